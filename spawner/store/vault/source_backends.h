/*
 * source_backends.h - the kinds of sources, and what they share. Internal to spawner/store/vault.
 *
 * A source has the operations close, get, list and check. The names that it gets are those behind
 * its own: "db" of "corp-db".
 */
#ifndef DF_SOURCE_BACKENDS_H
#define DF_SOURCE_BACKENDS_H

#include "spawner/model/never.h"
#include "spawner/store/vault/vault_backend.h"

/* Each opens a source from its part of vault.sources, without asking it. *ret_place: where its
 * secrets are, for people; the caller frees. */
int df_source_files_open(const cJSON *source, char **ret_place, struct df_vault **ret,
                         struct df_err *err) DF_MUST_CHECK;
int df_source_kv2_open(const cJSON *source, char **ret_place, struct df_vault **ret,
                       struct df_err *err) DF_MUST_CHECK;
/* kube and never are borrowed until close; source, too. name_space: without one of its own. */
int df_source_kube_open(const cJSON *source, struct df_kube *kube, const char *name_space,
                        const struct df_never *never, char **ret_place, struct df_vault **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* Adds a value that is good text. LIMIT: there are too many. */
int df_source_add_value(cJSON *values, const char *name, const char *key, const char *value,
                        struct df_err *err) DF_MUST_CHECK;

/* Adds {"name"} to a list, unless no executor can have a secret of this name. */
int df_source_add_name(cJSON *list, const char *name, struct df_err *err) DF_MUST_CHECK;

/* Fails with SYSTEM SecretUnreadable. Always -1. why: what is wrong, without the value. */
int df_source_unreadable(const char *name, const char *key, const char *why, struct df_err *err);

#endif
