/*
 * vault.h - named secrets; each is a small map of keys to values. Listing never shows values.
 * Thread rule: any thread.
 *
 * The interface has two backends: SQLite, sealed with AES-256-GCM under a key file, and Secrets of
 * a Kubernetes namespace. Besides, a vault may have sources (sources.h): the names of secrets
 * decide which of them come from there. A source is only read. Its failures have the reasons
 * SecretSourceUnavailable (class RETRY) and SecretSourceDenied (class DENIED), and name it.
 */
#ifndef DF_VAULT_H
#define DF_VAULT_H

#include "common/json/json.h"

struct df_vault; /* opaque */
struct df_kube;
struct df_sources;

/* Opens the SQLite backend: secrets are in the database file of the documents, sealed under a key
 * derived from the key file, each bound to its name and key. The key file is created together with
 * a new database. SYSTEM if it is missing later or is not the one the database was sealed with. */
int df_vault_open(const char *database, const char *key_file, struct df_vault **ret,
                  struct df_err *err) DF_MUST_CHECK;

/* Opens the Kubernetes backend: Secrets in this namespace with the label dayfly.dev/vault=true.
 * Names and keys are those of the Secret. People may create, label, change and delete them with
 * kubectl; a Secret without the label is never read or written. The master key of df_vault_key() is
 * in the Secret "dayfly-key", which is created if absent and never changed; SYSTEM if it is
 * damaged, or absent where blobs exist that need it. Any number of processes may use it; failures
 * of kube.h are possible in every call. kube is borrowed until close. */
int df_vault_kube_open(struct df_kube *kube, const char *name_space, struct df_vault **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* df_vault_list() of that backend, without the key: it creates nothing. */
int df_vault_kube_list(struct df_kube *kube, const char *name_space, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

void df_vault_close(struct df_vault *v); /* NULL is fine */
static inline void df_cleanup_vault(struct df_vault **v)
{
    df_vault_close(*v);
}
#define DF_VAULT DF_CLEANUP(df_cleanup_vault)

/* From now on the vault reads secrets from these sources, too, and owns them. Before other threads
 * use it. NULL: none. */
void df_vault_set_sources(struct df_vault *v, struct df_sources *sources);

/* Says where a person writes this key (NULL: KEY) of a secret, as the end of a sentence: "set it
 * with: dayfly secret set db password". The caller frees; NULL if out of memory. */
char *df_vault_advice(const struct df_vault *v, const char *name, const char *key);

/* CONFLICT SecretReadOnly if the secret comes from a source. */
int df_vault_check_writable(const struct df_vault *v, const char *name,
                            struct df_err *err) DF_MUST_CHECK;

/* What df_vault_put() writes in one step. All is borrowed. */
struct df_vault_entry {
    const char *key;   /* 1 to 253 of [A-Za-z0-9._-]; NULL: only the use of an existing secret */
    const void *value; /* text of at most DF_LIMIT_SECRET_VALUE bytes */
    size_t n;
    const cJSON *use; /* who may use the secret (model/secret_use.h); NULL: as before */
};

/* Sets one key, the use, or both; with a key it creates the secret if it is absent. name: a DNS
 * label. NOT_FOUND without key if there is no secret; otherwise as df_vault_check_writable(). */
int df_vault_put(struct df_vault *v, const char *name, const struct df_vault_entry *entry,
                 struct df_err *err) DF_MUST_CHECK;
/* Returns {executors, owner} of model/secret_use.h; for a secret of a source {executors, source},
 * without asking the source. NOT_FOUND names the secret. */
int df_vault_get_use(struct df_vault *v, const char *name, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
/* Returns {"key": "value", ...}, sorted by key; the caller deletes it with df_json_wipe().
 * NOT_FOUND names the secret. SYSTEM SecretUnreadable names secret and key, never a value: the
 * stored value does not open (it was moved from another entry, damaged, or sealed under another
 * key), or somebody wrote a value into a Secret that df_vault_put() would refuse. */
int df_vault_get(struct df_vault *v, const char *name, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* [{"name", "keys": [...], "updatedAt", "executors", "owner"}], sorted by name: no values. The last
 * two are the use. Without those of sources. */
int df_vault_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* The uses of all sources as [{"name": "corp-*", "executors", "source"}], without asking them. */
int df_vault_list_uses(const struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Asks all sources: [{"name", "keys", "executors", "source"}]; keys is empty where the source lists
 * names only. A source that does not list its secrets has one entry "corp-*" with "message". */
int df_vault_list_sources(const struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Deletes a key, or with key NULL the whole secret. NOT_FOUND if absent. A secret without keys is
 * deleted. */
int df_vault_delete(struct df_vault *v, const char *name, const char *key,
                    struct df_err *err) DF_MUST_CHECK;

/* ---- values of one run ----
 * Values that are kept until a run ends and are never in a document
 * (steps/sealed.h). An entry's id is 32 hex digits. The functions above cannot reach such an entry,
 * because its name is not a valid secret name. */

/* Creates or replaces the entry, durably. LIMIT if it has more than DF_LIMIT_RUN_SECRETS bytes as
 * JSON. */
int df_vault_run_put(struct df_vault *v, const char *id, const cJSON *values,
                     struct df_err *err) DF_MUST_CHECK;
/* NOT_FOUND if absent; the caller deletes *ret with df_json_wipe(). */
int df_vault_run_get(struct df_vault *v, const char *id, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
/* Success if absent. */
int df_vault_run_drop(struct df_vault *v, const char *id, struct df_err *err) DF_MUST_CHECK;
/* [{"name": <id>, "updatedAt", …}] */
int df_vault_run_list(struct df_vault *v, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Derives a key for another purpose ("plan") from the vault's master key; the caller wipes it. */
int df_vault_key(struct df_vault *v, const char *purpose, unsigned char out[32],
                 struct df_err *err) DF_MUST_CHECK;

enum { DF_VAULT_KEY_ID = 17 }; /* 16 hex digits and a NUL */

/* An identifier of the master key, which does not reveal the key. Stored beside encrypted data it
 * shows later whether the key was replaced. */
int df_vault_key_id(struct df_vault *v, char out[DF_VAULT_KEY_ID],
                    struct df_err *err) DF_MUST_CHECK;

#endif
