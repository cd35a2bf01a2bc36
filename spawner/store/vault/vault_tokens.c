#include "spawner/store/vault/vault_tokens.h"

#include "common/base/limits.h"
#include "spawner/store/vault/vault_backend.h"

#define PURPOSE "tokens"

/* Returns the entry's name; the caller frees. NULL if out of memory. */
static char *entry_of(const char *id)
{
    return df_strf(DF_VAULT_TOKENS_PREFIX "%s", id);
}

/* Returns what binds a record to its place; the caller frees. NULL if out of memory. */
static char *place_of(const char *id, const char *key)
{
    return df_strf("token/%s/%s", id, key);
}

/* ---- reading ---- */

/* *ret NULL: somebody else wrote it, or under another key. */
static int open_record(const unsigned char key[DF_KEY_LEN], const char *place, const char *sealed,
                       cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf bytes = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    *ret = NULL;
    if (!place)
        return df_fail_oom(err);
    if (df_base64_decode(sealed, strlen(sealed), false, &bytes, NULL) < 0 ||
        df_aead_open(key, place, bytes.data, bytes.len, &text, NULL) < 0)
        return 0;
    return df_json_parse(df_buf_str(&text), text.len, ret, err);
}

static int open_all(const unsigned char key[DF_KEY_LEN], const char *id, const cJSON *values,
                    cJSON *to, struct df_err *err)
{
    const cJSON *value;
    cJSON_ArrayForEach (value, values) {
        DF_FREE char *place = place_of(id, value->string);
        cJSON *record = NULL;
        if (open_record(key, place, value->valuestring, &record, err) < 0 ||
            (record && df_json_add(to, value->string, record, err) < 0))
            return -1;
    }
    return 0;
}

int df_vault_tokens_get(struct df_vault *v, const char *id, cJSON **ret, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    DF_FREE char *entry = entry_of(id);
    DF_JSON cJSON *values = NULL, *records = cJSON_CreateObject();
    struct df_err why = {0};
    if (df_check_alloc(entry, err) < 0 || df_check_alloc(records, err) < 0)
        return -1;
    if (v->ops->get(v, entry, &values, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (df_vault_key(v, PURPOSE, key, err) < 0)
        return -1;
    int result = open_all(key, id, values, records, err);
    explicit_bzero(key, sizeof(key));
    if (result == 0)
        *ret = DF_TAKE(records);
    return result;
}

int df_vault_tokens_list(struct df_vault *v, struct df_strs *ret, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    const cJSON *item;
    if (v->ops->list(v, false, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list) {
        const char *name = df_json_str(item, "name");
        if (df_starts_with(name, DF_VAULT_TOKENS_PREFIX))
            (void)df_strs_add(ret, name + strlen(DF_VAULT_TOKENS_PREFIX));
    }
    return df_strs_check(ret, err);
}

/* ---- writing ---- */

static int seal(struct df_vault *v, const char *place, const char *text, struct df_buf *out,
                struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    if (!place || !text)
        return df_fail_oom(err);
    if (df_vault_key(v, PURPOSE, key, err) < 0)
        return -1;
    int result = df_aead_seal(key, place, text, strlen(text), &sealed, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : df_base64_encode(sealed.data, sealed.len, false, out, err);
}

int df_vault_tokens_put(struct df_vault *v, const char *id, const char *key, const cJSON *record,
                        struct df_err *err)
{
    DF_FREE char *entry = entry_of(id), *place = place_of(id, key);
    DF_FREE char *text = df_json_print(record);
    DF_BUF struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    if (df_check_alloc(entry, err) < 0 || seal(v, place, text, &value, err) < 0)
        return -1;
    const struct df_vault_entry put = {.key = key, .value = value.data, .n = value.len};
    return v->ops->put(v, entry, &put, err);
}

int df_vault_tokens_drop(struct df_vault *v, const char *id, const char *key, struct df_err *err)
{
    DF_FREE char *entry = entry_of(id);
    struct df_err why = {0};
    if (!entry)
        return df_fail_oom(err);
    if (v->ops->remove(v, entry, key, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}
