/*
 * secret_use.h - who may use a secret of the vault, or an integration: one rule for both. Pure.
 *
 * The use of either is an object {executors: [names], owner: name}. Without `executors` every
 * executor may use the secret. `owner` is the caller who made it; a secret that is older than its
 * use, or was made with kubectl, has none. A secret that comes from a source has `source`, the name
 * of it in vault.sources. An entry of df_vault_list() has these members, too.
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

/* Whose use it is. Borrowed. */
struct df_used {
    const char *name;
    bool is_integration; /* else a secret */
};
#define DF_USED_SECRET(n) (&(const struct df_used){(n), false})
#define DF_USED_INTEGRATION(n) (&(const struct df_used){(n), true})

/* DENIED unless an admin or the owner asks to change or delete it. */
int df_secret_use_check_change(const cJSON *use, const struct df_used *what, enum df_role role,
                               const char *actor, struct df_err *err) DF_MUST_CHECK;

/* Is it meant for this executor by name, and by somebody else than the actor? */
bool df_secret_use_is_entrusted(const cJSON *use, const char *executor, const char *actor);

/* DENIED SecretNotAllowed, or IntegrationNotAllowed, if the executor may not use it; the message
 * names both, and who may. */
int df_secret_use_check(const cJSON *use, const struct df_used *what, const char *executor,
                        struct df_err *err) DF_MUST_CHECK;

/* Fails as that check does, because an actor who is neither owner nor admin makes an executor that
 * it is entrusted to; the message names the owner. Always -1. */
int df_secret_use_refuse_maker(const cJSON *use, const struct df_used *what, const char *executor,
                               struct df_err *err);

enum df_secret_place_kind { DF_SECRET_LISTED, DF_SECRET_OF_INTEGRATION, DF_SECRET_OF_SOURCE };

/* A place of a spec that names a secret. All is borrowed from the spec. */
struct df_secret_place {
    enum df_secret_place_kind by;
    const char *path;   /* "spec.secrets" */
    const char *name;   /* of the secret; "": the entry has none, or names an integration */
    const cJSON *entry; /* of the list; the source itself */
};

/* Sets *ret to place number i, from 0, of the spec of an Executor, a TaskAction, or a Run's
 * snapshot: all entries of secrets, those of integrations, then source.secretRef. False if there
 * are not so many. */
bool df_secret_place_at(const cJSON *spec, size_t i, struct df_secret_place *ret);

/* The integration that the place names; or NULL. */
const char *df_secret_place_integration(const struct df_secret_place *p);

/* True if the spec names the integration. */
bool df_integration_is_used(const cJSON *spec, const char *integration);

/* True if the spec names this key of the secret (NULL: any) itself. */
bool df_secret_is_used(const cJSON *spec, const char *secret, const char *key);

#endif
