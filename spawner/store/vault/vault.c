/*
 * Checks names, keys and sizes; then the backend stores the secrets. A secret of a source is read
 * there.
 */
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/store/vault/sources.h"
#include "spawner/store/vault/vault_backend.h"

/* ---- names and values ----------------------------------------------------------------------- */

static int check_name(const char *name, struct df_err *err)
{
    if (df_is_dns_label(name))
        return 0;
    return df_fail(err, DF_ERR_USER, "secret \"%s\": a name is a DNS label (a-z, 0-9, -)", name);
}

int df_vault_check_key(const char *key, struct df_err *err)
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
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no secret \"%s\"%s%s", name,
                   key ? " with the key " : "", key ? key : "");
}

int df_vault_unreadable(const char *name, const char *key, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "SecretUnreadable",
                          "secret \"%s\" key %s cannot be read: %s; set it again with: dayfly "
                          "secret set %s %s",
                          name, key, why, name, key);
}

/* ---- sources ---- */

void df_vault_set_sources(struct df_vault *v, struct df_sources *sources)
{
    v->sources = sources;
}

char *df_vault_advice(const struct df_vault *v, const char *name, const char *key)
{
    const char *rest;
    const struct df_source *source = df_sources_find(v->sources, name, &rest);
    return source ? df_strf("write it as \"%s\" to %s, from where the source %s reads it", rest,
                            source->place, source->name)
                  : df_strf("create it with: dayfly secret set %s %s", name, key ? key : "KEY");
}

int df_vault_check_writable(const struct df_vault *v, const char *name, struct df_err *err)
{
    const char *rest;
    DF_FREE char *advice = df_vault_advice(v, name, NULL);
    if (!df_sources_find(v->sources, name, &rest))
        return 0;
    return advice ? df_fail_reason(err, DF_ERR_CONFLICT, "SecretReadOnly",
                                   "dayfly only reads the secret \"%s\": %s", name, advice)
                  : df_fail_oom(err);
}

int df_vault_list_uses(const struct df_vault *v, cJSON **ret, struct df_err *err)
{
    return df_sources_list_uses(v->sources, ret, err);
}

int df_vault_list_sources(const struct df_vault *v, cJSON **ret, struct df_err *err)
{
    return df_sources_list(v->sources, ret, err);
}

static int get_from(const struct df_source *source, const char *name, const char *rest, cJSON **ret,
                    struct df_err *err)
{
    return source->backend->ops->get(source->backend, rest, ret, err) < 0
               ? df_err_wrap(err, "secret \"%s\" of the source %s", name, source->name)
               : 0;
}

/* ---- calls to the backend -------------------------------------------------------------------- */

void df_vault_close(struct df_vault *v)
{
    if (!v)
        return;
    df_sources_free(v->sources);
    v->ops->close(v);
}

int df_vault_put(struct df_vault *v, const char *name, const struct df_vault_entry *entry,
                 struct df_err *err)
{
    if (check_name(name, err) < 0 || df_vault_check_writable(v, name, err) < 0)
        return -1;
    if (entry->key && (df_vault_check_key(entry->key, err) < 0 ||
                       df_vault_check_value(entry->value, entry->n, err) < 0))
        return -1;
    return v->ops->put(v, name, entry, err);
}

int df_vault_get_use(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err)
{
    const char *rest;
    if (!df_is_dns_label(name))
        return df_vault_no_secret(name, NULL, err);
    const struct df_source *source = df_sources_find(v->sources, name, &rest);
    if (!source)
        return v->ops->get_use(v, name, ret, err);
    cJSON *use = cJSON_Duplicate(source->use, true);
    if (!use)
        return df_fail_oom(err);
    *ret = use;
    return 0;
}

int df_vault_get(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err)
{
    const char *rest;
    /* No secret can have an invalid name. */
    if (!df_is_dns_label(name))
        return df_vault_no_secret(name, NULL, err);
    const struct df_source *source = df_sources_find(v->sources, name, &rest);
    return source ? get_from(source, name, rest, ret, err) : v->ops->get(v, name, ret, err);
}

void df_vault_keep_secrets(cJSON *list)
{
    for (cJSON *entry = list->child, *next; entry; entry = next) {
        const char *name = df_json_str(entry, "name");
        next = entry->next;
        if (df_starts_with(name, DF_VAULT_INTEGRATION_PREFIX) ||
            df_starts_with(name, DF_VAULT_TOKENS_PREFIX))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, entry));
    }
}

int df_vault_list(struct df_vault *v, cJSON **ret, struct df_err *err)
{
    if (v->ops->list(v, false, ret, err) < 0)
        return -1;
    df_vault_keep_secrets(*ret);
    return 0;
}

int df_vault_delete(struct df_vault *v, const char *name, const char *key, struct df_err *err)
{
    if (!df_is_dns_label(name))
        return df_vault_no_secret(name, key, err);
    return df_vault_check_writable(v, name, err) < 0 ? -1 : v->ops->remove(v, name, key, err);
}

/* ---- values of one run ----------------------------------------------------------------------- */

#define RUN_KEY "values"

static bool is_run_id(const char *id)
{
    return strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32;
}

/* Returns the entry's name; the caller frees. NULL if out of memory. */
static char *run_entry(const char *id)
{
    return df_strf(DF_VAULT_RUN_PREFIX "%s", id);
}

static int put_text(struct df_vault *v, const char *id, const char *text, struct df_err *err)
{
    DF_FREE char *name = run_entry(id);
    size_t n = strlen(text);
    if (!name)
        return df_fail_oom(err);
    if (n > DF_LIMIT_RUN_SECRETS)
        return df_fail(err, DF_ERR_LIMIT,
                       "the secrets of a run have at most %zu bytes as JSON; these have %zu",
                       DF_LIMIT_RUN_SECRETS, n);
    const struct df_vault_entry entry = {.key = RUN_KEY, .value = text, .n = n};
    return v->ops->put(v, name, &entry, err);
}

int df_vault_run_put(struct df_vault *v, const char *id, const cJSON *values, struct df_err *err)
{
    if (!is_run_id(id))
        return df_fail(err, DF_ERR_BUG, "\"%.64s\" is not an id of a run's secrets", id);
    char *text = df_json_print(values);
    if (!text)
        return df_fail_oom(err);
    int result = put_text(v, id, text, err);
    df_str_wipe(&text);
    return result;
}

int df_vault_run_get(struct df_vault *v, const char *id, cJSON **ret, struct df_err *err)
{
    DF_FREE char *name = run_entry(id);
    DF_SECRET_JSON cJSON *entry = NULL;
    if (!name)
        return df_fail_oom(err);
    if (!is_run_id(id))
        return df_vault_no_secret(name, NULL, err);
    if (v->ops->get(v, name, &entry, err) < 0)
        return -1;
    const char *text = df_json_str(entry, RUN_KEY);
    return df_json_parse(text ? text : "", text ? strlen(text) : 0, ret, err);
}

int df_vault_run_drop(struct df_vault *v, const char *id, struct df_err *err)
{
    DF_FREE char *name = run_entry(id);
    struct df_err why = {0};
    if (!name)
        return df_fail_oom(err);
    if (!is_run_id(id) || v->ops->remove(v, name, NULL, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

int df_vault_run_list(struct df_vault *v, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    cJSON *entry;
    if (v->ops->list(v, true, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (entry, list) {
        const char *name = df_json_str(entry, "name");
        const char *id =
            df_starts_with(name, DF_VAULT_RUN_PREFIX) ? name + strlen(DF_VAULT_RUN_PREFIX) : "";
        DF_FREE char *copy = strdup(id);
        if (df_json_put(entry, err, DF_STR_ALLOC("name", copy)) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

int df_vault_key(struct df_vault *v, const char *purpose, unsigned char out[DF_KEY_LEN],
                 struct df_err *err)
{
    return df_derive_key(v->master, purpose, out, err);
}

int df_vault_key_id(struct df_vault *v, char out[DF_VAULT_KEY_ID], struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    char digest[DF_SHA256_HEX];
    if (df_vault_key(v, "key-id", key, err) < 0)
        return -1;
    int result = df_sha256_hex(key, sizeof(key), digest, err);
    explicit_bzero(key, sizeof(key));
    if (result == 0)
        (void)snprintf(out, DF_VAULT_KEY_ID, "%.16s", digest);
    return result;
}
