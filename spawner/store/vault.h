/*
 * vault.h - named secrets: each a small map of key to value, AES-256-GCM under the key file. Values
 * are never listed. Thread rule: any thread.
 */
#ifndef DF_VAULT_H
#define DF_VAULT_H

#include "common/json/json.h"

struct df_vault; /* opaque */

/* Secrets live beside the documents in this SQLite file, sealed under a key derived from the key
 * file, each bound to its name and key. The key file is made together with a new database; class
 * SYSTEM when it is missing later or is another one than the database was sealed with. */
int df_vault_open(const char *database, const char *key_file, struct df_vault **ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_vault_close(struct df_vault *v);

/* Sets one key, making the secret when absent. name is a DNS label, key 1 to 253 of [A-Za-z0-9._-],
 * value text of at most DF_LIMIT_SECRET_VALUE bytes. */
int df_vault_set(struct df_vault *v, const char *name, const char *key, const void *value, size_t n,
                 struct df_err *err) DF_MUST_CHECK;
/* {"key": "value", ...} with the values; the caller deletes it with df_json_wipe(). NOT_FOUND names
 * the secret. Values that are not UTF-8 are refused at set time. */
int df_vault_get(struct df_vault *v, const char *name, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* [{"name", "keys": [...], "updatedAt"}]: no values. */
int df_vault_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* key == NULL: the whole secret. NOT_FOUND when there is nothing. A secret without keys is gone. */
int df_vault_delete(struct df_vault *v, const char *name, const char *key,
                    struct df_err *err) DF_MUST_CHECK;

/* A key for another purpose ("plan") from the same key file; the caller wipes it. */
int df_vault_key(struct df_vault *v, const char *purpose, unsigned char out[32],
                 struct df_err *err) DF_MUST_CHECK;

#endif
