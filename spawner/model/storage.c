/*
 * spec.storage: defaults, and the location of a state. For a type other than `managed` the state is
 * in one of tofu's own backends, or in the backend of the module. The rules: storage_rules.c.
 */
#include "spawner/model/storage.h"

#include "common/base/limits.h"
#include "spawner/model/storage_types.h"
#include "spawner/model/task_kinds.h"

const char *df_storage_path_key(const char *type)
{
    const struct df_storage_type *s = df_storage_type_find(type);
    return s ? s->path_key : NULL;
}

bool df_storage_is_managed(const cJSON *doc)
{
    const char *type = df_json_str(doc, "spec.storage.type");
    return type ? df_streq(type, "managed") : df_task_kind(doc)->has_managed_state;
}

bool df_storage_has_history(const cJSON *executor)
{
    const char *type = df_json_str(executor, "spec.storage.type");
    const struct df_storage_type *s = type ? df_storage_type_find(type) : NULL;
    return s && s->has_history;
}

/* ---- defaults ---- */

static int fill_path(cJSON *storage, const struct df_storage_type *s, const char *name,
                     struct df_err *err)
{
    if (!s->path_form || !name || df_json_at(storage, "path"))
        return 0;
    const char *end = strstr(s->path_form, "%s");
    DF_FREE char *path =
        df_strf("%.*s%s%s", (int)(end - s->path_form), s->path_form, name, end + 2);
    return df_json_put(storage, err, DF_STR_ALLOC("path", path));
}

/* Without these the backend s3 would neither lock nor ask for encryption. */
static int fill_s3(cJSON *config, struct df_err *err)
{
    if (!df_json_at(config, "dynamodb_table") && !df_json_at(config, "use_lockfile") &&
        df_json_add_bool(config, "use_lockfile", true, err) < 0)
        return -1;
    return df_json_at(config, "encrypt") ? 0 : df_json_add_bool(config, "encrypt", true, err);
}

static int fill_address(cJSON *config, const char *name, const char *from, struct df_err *err)
{
    DF_FREE char *value = df_json_str(config, from) ? strdup(df_json_str(config, from)) : NULL;
    return !value || df_json_at(config, name) ? 0 : df_json_add_str(config, name, value, err);
}

/* Without both of these the backend http would not lock. */
static int fill_http(cJSON *config, struct df_err *err)
{
    return fill_address(config, "lock_address", "address", err) < 0
               ? -1
               : fill_address(config, "unlock_address", "lock_address", err);
}

/* A name that is a number, as YAML reads 123456: the backend takes its digits. */
static int fill_names(cJSON *config, const struct df_storage_type *s, struct df_err *err)
{
    for (const char *const *name = s->required; *name; name++) {
        const cJSON *given = cJSON_GetObjectItemCaseSensitive(config, *name);
        if (!df_json_is_number(given))
            continue;
        DF_FREE char *digits = df_json_print(given);
        if (df_json_put(config, err, DF_STR_ALLOC(*name, digits)) < 0)
            return -1;
    }
    return 0;
}

int df_storage_fill(cJSON *spec, const char *name, struct df_err *err)
{
    cJSON *storage = cJSON_GetObjectItemCaseSensitive(spec, "storage");
    const struct df_storage_type *s = df_storage_type_find(df_json_str(storage, "type"));
    cJSON *config = cJSON_GetObjectItemCaseSensitive(storage, "config");
    if (!s)
        return 0;
    if (fill_path(storage, s, name, err) < 0)
        return -1;
    if (!cJSON_IsObject(config))
        return 0;
    if (fill_names(config, s, err) < 0)
        return -1;
    if (df_streq(s->name, "s3"))
        return fill_s3(config, err);
    return df_streq(s->name, "http") ? fill_http(config, err) : 0;
}

bool df_storage_is_same(const char *name, const cJSON *a, const cJSON *b)
{
    DF_JSON cJSON *first = cJSON_CreateObject(), *second = cJSON_CreateObject();
    if (df_json_equal(a, b))
        return true;
    return df_json_set(first, "storage", cJSON_Duplicate(a, true), NULL) == 0 &&
           df_json_set(second, "storage", cJSON_Duplicate(b, true), NULL) == 0 &&
           df_storage_fill(first, name, NULL) == 0 && df_storage_fill(second, name, NULL) == 0 &&
           df_json_equal(first, second);
}

/* The same bucket name exists once at each endpoint. */
static void add_endpoint(const cJSON *config, struct df_buf *text)
{
    static const char *const names[] = {"endpoints.s3", "endpoint", "storage_custom_endpoint"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *url = df_json_str(config, names[i]);
        if (url)
            (void)df_buf_addf(text, ", endpoint %s", url);
    }
}

char *df_storage_words(const cJSON *storage)
{
    const char *type = df_json_str(storage, "type"), *path = df_json_str(storage, "path");
    const struct df_storage_type *s = df_storage_type_find(type);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    (void)df_buf_addf(&text, "the %s storage%s%s", type ? type : "managed", path ? " " : "",
                      path ? path : "");
    for (const char *const *name = s ? s->required : NULL; name && *name; name++) {
        const char *value = df_json_str(df_json_at(storage, "config"), *name);
        if (value)
            (void)df_buf_addf(&text, ", %s %s", *name, value);
    }
    add_endpoint(df_json_at(storage, "config"), &text);
    return df_buf_take(&text);
}

/* ---- one executor for each location ---- */

int df_storage_location(const cJSON *executor, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *spec = cJSON_Duplicate(df_json_at(executor, "spec"), true);
    if (df_check_alloc(spec, err) < 0 ||
        df_storage_fill(spec, df_json_str(executor, "metadata.name"), err) < 0)
        return -1;
    const cJSON *storage = df_json_at(spec, "storage");
    const struct df_storage_type *s = df_storage_type_find(df_json_str(storage, "type"));
    const char *path = df_json_str(storage, "path");
    if (!s || !s->place || (s->path_key && !path)) {
        *ret = NULL;
        return 0;
    }
    s->place(&text, df_json_at(storage, "config"), path);
    return df_check_alloc(*ret = df_buf_take(&text), err);
}
