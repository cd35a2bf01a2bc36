#include "spawner/store/vault/vault_integrations.h"

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/store/vault/vault_backend.h"

#define DOCUMENT "document"
#define LAST_USE "last-use"

static int fail_absent(const char *name, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no integration \"%.64s\"", name);
}

/* Returns the entry's name; the caller frees. NULL if out of memory. */
static char *entry_of(const char *name)
{
    return df_strf(DF_VAULT_INTEGRATION_PREFIX "%s", name);
}

/* ---- reading ---- */

/* Parses the text of this key; success without one. */
static int parse_key(const cJSON *entry, const char *key, cJSON **ret, struct df_err *err)
{
    const char *text = df_json_str(entry, key);
    return text ? df_json_parse(text, strlen(text), ret, err) : 0;
}

static int add_last_use(cJSON *doc, const cJSON *use, struct df_err *err)
{
    cJSON *status = use ? df_json_object_at(doc, "status") : NULL;
    if (!use)
        return 0;
    return df_json_put(status, err, DF_STR("lastUsedAt", df_json_str(use, "at")),
                       DF_STR("lastUsedBy", df_json_str(use, "by")));
}

int df_vault_integration_get(struct df_vault *v, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *entry = entry_of(name);
    DF_SECRET_JSON cJSON *values = NULL;
    DF_JSON cJSON *doc = NULL, *use = NULL;
    struct df_err why = {0};
    if (!entry)
        return df_fail_oom(err);
    if (!df_is_dns_label(name))
        return fail_absent(name, err);
    if (v->ops->get(v, entry, &values, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? fail_absent(name, err) : df_err_pass(err, &why);
    if (parse_key(values, DOCUMENT, &doc, err) < 0 || parse_key(values, LAST_USE, &use, err) < 0)
        return df_err_wrap(err, "integration %s", name);
    if (!doc)
        return fail_absent(name, err);
    if (add_last_use(doc, use, err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}

int df_vault_integration_list(struct df_vault *v, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *names = NULL, *list = cJSON_CreateArray();
    const cJSON *item;
    if (df_check_alloc(list, err) < 0 || v->ops->list(v, false, &names, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, names) {
        const char *name = df_json_str(item, "name");
        cJSON *doc = NULL;
        struct df_err why = {0};
        if (!df_starts_with(name, DF_VAULT_INTEGRATION_PREFIX))
            continue;
        if (df_vault_integration_get(v, name + strlen(DF_VAULT_INTEGRATION_PREFIX), &doc, &why) <
            0) {
            if (why.cls != DF_ERR_NOT_FOUND) /* deleted meanwhile */
                return df_err_pass(err, &why);
        } else if (df_json_append(list, doc, err) < 0) {
            return -1;
        }
    }
    *ret = DF_TAKE(list);
    return 0;
}

/* ---- writing ---- */

static int put_key(struct df_vault *v, const char *name, const char *key, const cJSON *value,
                   struct df_err *err)
{
    DF_FREE char *entry = entry_of(name);
    DF_FREE char *text = df_json_print(value);
    if (!entry || !text)
        return df_fail_oom(err);
    size_t n = strlen(text);
    if (!df_is_dns_label(name))
        return fail_absent(name, err);
    if (df_vault_check_value(text, n, err) < 0)
        return df_err_wrap(err, "integration %s", name);
    const struct df_vault_entry put = {.key = key, .value = text, .n = n};
    return v->ops->put(v, entry, &put, err);
}

int df_vault_integration_put(struct df_vault *v, const char *name, const cJSON *doc,
                             struct df_err *err)
{
    return put_key(v, name, DOCUMENT, doc, err);
}

int df_vault_integration_note(struct df_vault *v, const char *name, const char *by, int64_t now_us,
                              struct df_err *err)
{
    DF_JSON cJSON *use = df_json_object(DF_TIME("at", now_us), DF_STR("by", by));
    if (!use)
        return df_fail_oom(err);
    return put_key(v, name, LAST_USE, use, err);
}

int df_vault_integration_delete(struct df_vault *v, const char *name, struct df_err *err)
{
    DF_FREE char *entry = entry_of(name);
    struct df_err why = {0};
    if (!entry)
        return df_fail_oom(err);
    if (!df_is_dns_label(name))
        return fail_absent(name, err);
    if (v->ops->remove(v, entry, NULL, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? fail_absent(name, err) : df_err_pass(err, &why);
}
