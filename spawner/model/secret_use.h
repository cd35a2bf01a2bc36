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

/* True if the spec of an Executor, a TaskAction, or a Run's snapshot uses this key of the secret
 * (NULL: any): by secrets, integrations or source.secretRef. Only an entry of secrets may choose
 * keys. */
bool df_secret_is_used(const cJSON *spec, const char *secret, const char *key);
/* True if it uses any secret. */
bool df_secret_is_any_used(const cJSON *spec);

#endif
