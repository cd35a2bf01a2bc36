/*
 * vault_home.h - what a home of secrets does. Internal to spawner/store.
 *
 * Names, and what is set, are checked before they come here. The meaning of each call is vault.h's.
 */
#ifndef DF_VAULT_HOME_H
#define DF_VAULT_HOME_H

#include "common/crypto/crypto.h"
#include "spawner/store/vault/vault.h"

struct df_vault_ops {
    void (*close)(struct df_vault *v); /* wipes the master key, too */
    int (*set)(struct df_vault *v, const char *name, const char *key, const void *value, size_t n,
               struct df_err *err);
    int (*get)(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err);
    /* of_runs: the entries of runs, and nothing else; otherwise everything but them */
    int (*list)(struct df_vault *v, bool of_runs, cJSON **ret, struct df_err *err);
    int (*remove)(struct df_vault *v, const char *name, const char *key, struct df_err *err);
};

/* What every home begins with. */
struct df_vault {
    const struct df_vault_ops *ops;
    unsigned char master[DF_KEY_LEN]; /* what df_vault_key() derives from */
};

/* What the names of runs' entries begin with. The dot keeps them apart from every secret's name,
 * which is a DNS label; both are names of Kubernetes. */
#define DF_VAULT_RUN_PREFIX "dayfly-run."

/* "secret "x" key k does not exist", NOT_FOUND: always -1. key may be NULL. */
int df_vault_no_secret(const char *name, const char *key, struct df_err *err);

/* LIMIT when it is too large, USER when it is no text. */
int df_vault_check_value(const void *value, size_t n, struct df_err *err) DF_MUST_CHECK;

#endif
