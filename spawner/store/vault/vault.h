/*
 * vault.h - named secrets: each a small map of key to value. Values are never listed. Thread rule:
 * any thread.
 *
 * One interface, two backends: sealed (AES-256-GCM under the key file) in SQLite, or Secrets of a
 * Kubernetes namespace.
 */
#ifndef DF_VAULT_H
#define DF_VAULT_H

#include "common/json/json.h"

struct df_vault; /* opaque */
struct df_kube;

/* Secrets live beside the documents in this SQLite file, sealed under a key derived from the key
 * file, each bound to its name and key. The key file is made together with a new database; class
 * SYSTEM when it is missing later or is another one than the database was sealed with. */
int df_vault_open(const char *database, const char *key_file, struct df_vault **ret,
                  struct df_err *err) DF_MUST_CHECK;

/* Secrets of this namespace that carry the label dayfly.dev/vault=true: the secret's name is the
 * Secret's, its keys are the Secret's. People may make, label, change and delete them with kubectl;
 * a Secret without the label is never read or written. The key behind df_vault_key() is the Secret
 * "dayfly-key", made when there is none and never changed; SYSTEM when it is damaged. Any number of
 * processes; failures are those of kube.h besides. kube is borrowed and must live on. */
int df_vault_kube_open(struct df_kube *kube, const char *name_space, struct df_vault **ret,
                       struct df_err *err) DF_MUST_CHECK;

void df_vault_close(struct df_vault *v); /* NULL is fine */
static inline void df_cleanup_vault(struct df_vault **v)
{
    df_vault_close(*v);
}
#define DF_VAULT DF_CLEANUP(df_cleanup_vault)

/* Sets one key, making the secret when absent. name is a DNS label, key 1 to 253 of [A-Za-z0-9._-],
 * value text of at most DF_LIMIT_SECRET_VALUE bytes. */
int df_vault_set(struct df_vault *v, const char *name, const char *key, const void *value, size_t n,
                 struct df_err *err) DF_MUST_CHECK;
/* {"key": "value", ...} with the values, sorted by key; the caller deletes it with df_json_wipe().
 * NOT_FOUND names the secret. Values that are not UTF-8 are refused at set time; what somebody else
 * wrote into a Secret, here: USER. */
int df_vault_get(struct df_vault *v, const char *name, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* [{"name", "keys": [...], "updatedAt"}], sorted by name: no values. */
int df_vault_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* key == NULL: the whole secret. NOT_FOUND when there is nothing. A secret without keys is gone. */
int df_vault_delete(struct df_vault *v, const char *name, const char *key,
                    struct df_err *err) DF_MUST_CHECK;

/* ---- what one run was given ----
 * Values that live until a run ends and never stand in a document (steps/sealed.h). An entry's id
 * is 32 hex digits. Nothing above reaches such an entry: no name of a secret can be its name. */

/* Makes or replaces it, durably. LIMIT beyond DF_LIMIT_RUN_SECRETS bytes as JSON. */
int df_vault_run_put(struct df_vault *v, const char *id, const cJSON *values,
                     struct df_err *err) DF_MUST_CHECK;
/* NOT_FOUND when there is none; the caller deletes it with df_json_wipe(). */
int df_vault_run_get(struct df_vault *v, const char *id, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
/* One that is not there is success. */
int df_vault_run_drop(struct df_vault *v, const char *id, struct df_err *err) DF_MUST_CHECK;
/* [{"name": <id>, "updatedAt", …}] */
int df_vault_run_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A key for another purpose ("plan") from the vault's master key; the caller wipes it. */
int df_vault_key(struct df_vault *v, const char *purpose, unsigned char out[32],
                 struct df_err *err) DF_MUST_CHECK;

#endif
