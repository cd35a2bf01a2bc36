#include "runner/tofu/backend_noted.h"

#include "common/base/fs.h"
#include "common/base/limits.h"

int df_backend_noted_load(const char *module_dir, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(module_dir, DF_BACKEND_NOTE);
    DF_JSON cJSON *data = NULL;
    if (!path)
        return df_fail_oom(err);
    if (df_json_load(path, DF_LIMIT_DOCUMENT, &data, NULL) < 0)
        *ret = NULL;
    else
        *ret = cJSON_DetachItemFromObjectCaseSensitive(data, "backend");
    return 0;
}

static int noted_refuse(const char *what, const char *taken, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "BackendInModule",
                          "a file of the source overrides the backend that dayfly set (%.60s: "
                          "%.60s): remove the backend block from the override files of the module",
                          what, taken);
}

/* True for what the tool notes of a setting that is not there. */
static bool noted_is_unset(const cJSON *value)
{
    const cJSON *member;
    if (cJSON_IsObject(value) || cJSON_IsArray(value)) {
        cJSON_ArrayForEach (member, value)
            if (!noted_is_unset(member))
                return false;
        return true;
    }
    return !value || cJSON_IsNull(value);
}

/* The tool turns "true" into a bool and "5" into a number, or the other way round. */
static bool noted_scalar_equal(const cJSON *one, const cJSON *other)
{
    DF_FREE char *a = cJSON_IsString(one) ? strdup(one->valuestring) : df_json_print(one);
    DF_FREE char *b = cJSON_IsString(other) ? strdup(other->valuestring) : df_json_print(other);
    return a && b && df_streq(a, b);
}

static bool noted_equal(const cJSON *one, const cJSON *other);

/* Every member of one is in the other. */
static bool noted_has_all(const cJSON *one, const cJSON *other)
{
    const cJSON *m;
    cJSON_ArrayForEach (m, one)
        if (!noted_equal(m, cJSON_GetObjectItemCaseSensitive(other, m->string)))
            return false;
    return true;
}

static bool noted_items_equal(const cJSON *one, const cJSON *other)
{
    const cJSON *x = one->child, *y = other->child;
    while (x && y && noted_equal(x, y)) {
        x = x->next;
        y = y->next;
    }
    return !x && !y;
}

/* Equal as settings of a backend: as df_json_equal(), but for the forms of the tool. A nested block
 * is a list of one in some backends. Settings are a few levels deep, json.h limits them. */
static bool noted_equal(const cJSON *one, const cJSON *other)
{
    if (noted_is_unset(one) || noted_is_unset(other))
        return noted_is_unset(one) && noted_is_unset(other);
    if (cJSON_IsArray(one) && cJSON_IsArray(other))
        return noted_items_equal(one, other);
    if (cJSON_IsArray(one) || cJSON_IsArray(other)) {
        const cJSON *list = cJSON_IsArray(one) ? one : other, *item = list == one ? other : one;
        return cJSON_GetArraySize(list) == 1 && noted_equal(list->child, item);
    }
    if (cJSON_IsObject(one) && cJSON_IsObject(other))
        return noted_has_all(one, other) && noted_has_all(other, one);
    return !cJSON_IsObject(one) && !cJSON_IsObject(other) && noted_scalar_equal(one, other);
}

/* Every setting of one must be in the other: whatever its type is, it can lead the state elsewhere,
 * or let somebody on the way read it. */
static int noted_compare(const cJSON *one, const cJSON *other, struct df_err *err)
{
    const cJSON *setting;
    cJSON_ArrayForEach (setting, one) {
        const cJSON *there = cJSON_GetObjectItemCaseSensitive(other, setting->string);
        const char *text = cJSON_GetStringValue(there);
        if (!noted_equal(setting, there))
            return noted_refuse(setting->string,
                                text    ? text
                                : there ? "another value"
                                        : "not set",
                                err);
    }
    return 0;
}

int df_backend_noted_check(const cJSON *step, const char *module_dir, struct df_err *err)
{
    DF_JSON cJSON *noted = NULL;
    const char *type = df_json_str(step, "state.type");
    bool managed = df_streq(type, "managed");
    if (df_streq(type, "module"))
        return 0;
    if (df_backend_noted_load(module_dir, &noted, err) < 0)
        return -1;
    const char *taken = df_json_str(noted, "type");
    if (!df_streq(taken, managed ? "http" : type))
        return noted_refuse("type", taken ? taken : "none", err);
    /* The block of a managed state is empty: its address comes through the environment. */
    const cJSON *wanted = managed ? NULL : df_json_at(step, "state.config");
    const cJSON *config = df_json_at(noted, "config");
    return noted_compare(wanted, config, err) < 0 ? -1 : noted_compare(config, wanted, err);
}
