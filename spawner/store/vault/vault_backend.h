/*
 * vault_backend.h - the operations of a vault's backend. Internal to spawner/store/vault.
 *
 * vault.c checks names and values before it calls a backend. vault.h describes each operation.
 */
#ifndef DF_VAULT_BACKEND_H
#define DF_VAULT_BACKEND_H

#include "common/crypto/crypto.h"
#include "spawner/store/vault/vault.h"

struct df_vault_ops {
    void (*close)(struct df_vault *v); /* wipes the master key, too */
    int (*put)(struct df_vault *v, const char *name, const struct df_vault_entry *entry,
               struct df_err *err);
    int (*get)(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err);
    int (*get_use)(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err);
    /* of_runs: only the entries of runs; otherwise only the other secrets */
    int (*list)(struct df_vault *v, bool of_runs, cJSON **ret, struct df_err *err);
    int (*remove)(struct df_vault *v, const char *name, const char *key, struct df_err *err);
    /* Sources only: succeeds if secrets can be read now, as far as that can be known without
     * reading one. */
    int (*check)(struct df_vault *v, struct df_err *err);
};

/* The first member of every backend. */
struct df_vault {
    const struct df_vault_ops *ops;
    struct df_sources *sources;       /* owned; NULL: none. Of a source always NULL */
    unsigned char master[DF_KEY_LEN]; /* df_vault_key() derives keys from it */
};

/* The prefix of the names of runs' entries. The dot keeps them apart from secrets, whose names are
 * DNS labels. Both are valid names of Kubernetes objects. */
#define DF_VAULT_RUN_PREFIX "dayfly-run."
/* That of the entries of integrations (vault_integrations.h). */
#define DF_VAULT_INTEGRATION_PREFIX "dayfly-integration."
/* That of the entries of people's tokens (vault_tokens.h). */
#define DF_VAULT_TOKENS_PREFIX "dayfly-tokens."

/* Deletes from a list what is no secret of a user: the entries of integrations and tokens. */
void df_vault_keep_secrets(cJSON *list);

/* Fails with NOT_FOUND: 'there is no secret "x" with the key k'. Always -1. key may be NULL. */
int df_vault_no_secret(const char *name, const char *key, struct df_err *err);

/* Fails with SYSTEM SecretUnreadable. Always -1. why: what is wrong, without the value. */
int df_vault_unreadable(const char *name, const char *key, const char *why, struct df_err *err);

/* USER unless it is 1 to DF_LIMIT_SECRET_KEY of [A-Za-z0-9._-]. */
int df_vault_check_key(const char *key, struct df_err *err) DF_MUST_CHECK;

/* LIMIT if the value is too large, USER if it is not UTF-8 text. */
int df_vault_check_value(const void *value, size_t n, struct df_err *err) DF_MUST_CHECK;

#endif
