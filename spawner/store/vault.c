#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/store/vault_home.h"

/* ---- names and values ----------------------------------------------------------------------- */

static int check_name(const char *name, struct df_err *err)
{
    if (df_is_dns_label(name))
        return 0;
    return df_fail(err, DF_ERR_USER, "secret \"%s\": a name is a DNS label (a-z, 0-9, -)", name);
}

static int check_key(const char *key, struct df_err *err)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(key);
    if (n == 0 || n > DF_LIMIT_SECRET_KEY || strspn(key, good) != n)
        return df_fail(err, DF_ERR_USER, "key \"%.*s\": 1 to %d of A-Z, a-z, 0-9, . _ -",
                       DF_LIMIT_SECRET_KEY, key, DF_LIMIT_SECRET_KEY);
    return 0;
}

int df_vault_check_value(const void *value, size_t n, struct df_err *err)
{
    if (n > DF_LIMIT_SECRET_VALUE)
        return df_fail(err, DF_ERR_LIMIT, "a secret value has at most %zu bytes",
                       DF_LIMIT_SECRET_VALUE);
    if (n && (!df_is_utf8(value, n) || memchr(value, '\0', n)))
        return df_fail(err, DF_ERR_USER,
                       "a secret value is UTF-8 text without NUL: encode it (base64) before");
    return 0;
}

int df_vault_no_secret(const char *name, const char *key, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "secret \"%s\"%s%s does not exist", name,
                   key ? " key " : "", key ? key : "");
}

/* ---- whichever home it is ------------------------------------------------------------------- */

void df_vault_close(struct df_vault *v)
{
    if (v)
        v->ops->close(v);
}

int df_vault_set(struct df_vault *v, const char *name, const char *key, const void *value, size_t n,
                 struct df_err *err)
{
    if (check_name(name, err) < 0 || check_key(key, err) < 0 ||
        df_vault_check_value(value, n, err) < 0)
        return -1;
    return v->ops->set(v, name, key, value, n, err);
}

int df_vault_get(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err)
{
    /* What cannot be a name is none. */
    return df_is_dns_label(name) ? v->ops->get(v, name, ret, err)
                                 : df_vault_no_secret(name, NULL, err);
}

int df_vault_list(struct df_vault *v, cJSON **ret, struct df_err *err)
{
    return v->ops->list(v, ret, err);
}

int df_vault_delete(struct df_vault *v, const char *name, const char *key, struct df_err *err)
{
    return df_is_dns_label(name) ? v->ops->remove(v, name, key, err)
                                 : df_vault_no_secret(name, key, err);
}

int df_vault_key(struct df_vault *v, const char *purpose, unsigned char out[DF_KEY_LEN],
                 struct df_err *err)
{
    return df_derive_key(v->master, purpose, out, err);
}
