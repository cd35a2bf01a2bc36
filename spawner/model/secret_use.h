/*
 * secret_use.h - who may use a secret of the vault. Pure.
 *
 * The use of a secret is an object {executors: [names], owner: name}. Without `executors` every
 * executor may use the secret. `owner` is the caller who made it; a secret that is older than its
 * use, or was made with kubectl, has none. An entry of df_vault_list() has these members, too.
 */
#ifndef DF_MODEL_SECRET_USE_H
#define DF_MODEL_SECRET_USE_H

#include "spawner/model/model.h"

/* May this executor use the secret? executor: its name. */
bool df_secret_use_covers(const cJSON *use, const char *executor);

/* Builds a use. executors: "*" (every executor), or names, separated by commas; owner: may be NULL.
 * USER: the text is empty, or has a name that no executor can have, or more than
 * DF_LIMIT_SECRET_EXECUTORS of them. */
int df_secret_use_parse(const char *executors, const char *owner, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* DENIED unless an admin or the owner asks to change or delete the secret. */
int df_secret_use_check_change(const cJSON *use, const char *secret, enum df_role role,
                               const char *actor, struct df_err *err) DF_MUST_CHECK;

/* DENIED SecretNotAllowed if the executor may not use the secret; the message names both, and who
 * may. */
int df_secret_use_check(const cJSON *use, const char *secret, const char *executor,
                        struct df_err *err) DF_MUST_CHECK;

enum df_secret_place_kind { DF_SECRET_LISTED, DF_SECRET_OF_INTEGRATION, DF_SECRET_OF_SOURCE };

/* A place of a spec that names a secret. All is borrowed from the spec. */
struct df_secret_place {
    enum df_secret_place_kind by;
    const char *path;   /* "spec.secrets" */
    const char *name;   /* "": the entry, which nobody has checked yet, has none */
    const cJSON *entry; /* of the list; the source itself */
};

/* Sets *ret to place number i, from 0, of the spec of an Executor, a TaskAction, or a Run's
 * snapshot: all entries of secrets, those of integrations, then source.secretRef. False if there are
 * not so many. */
bool df_secret_place_at(const cJSON *spec, size_t i, struct df_secret_place *ret);

/* True if the spec uses this key of the secret (NULL: any). */
bool df_secret_is_used(const cJSON *spec, const char *secret, const char *key);

#endif
