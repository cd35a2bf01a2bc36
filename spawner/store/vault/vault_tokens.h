/*
 * vault_tokens.h - the records of people's tokens (identity/personal.h): one entry of the vault for
 * each person, dayfly-tokens.ID, with a record under each key. In a cluster an entry is a Secret,
 * which others may write: each record is sealed, and bound to its entry and key. A record that does
 * not open counts as none. An entry is in no backup. Thread rule: any thread.
 */
#ifndef DF_VAULT_TOKENS_H
#define DF_VAULT_TOKENS_H

#include "common/base/strs.h"
#include "spawner/store/vault/vault.h"

#define DF_VAULT_TOKENS_ID 33 /* 32 hex digits and a NUL */

/* *ret: {key: record}, empty if there is no such entry; the caller frees. */
int df_vault_tokens_get(struct df_vault *v, const char *id, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;
/* The ids of all entries. */
int df_vault_tokens_list(struct df_vault *v, struct df_strs *ret, struct df_err *err) DF_MUST_CHECK;
/* Creates or replaces a record. key: as of a secret. */
int df_vault_tokens_put(struct df_vault *v, const char *id, const char *key, const cJSON *record,
                        struct df_err *err) DF_MUST_CHECK;
/* Removes a record, or with key NULL the entry. Success if absent. */
int df_vault_tokens_drop(struct df_vault *v, const char *id, const char *key,
                         struct df_err *err) DF_MUST_CHECK;

#endif
