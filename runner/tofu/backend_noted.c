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

/* Only strings: the tool notes numbers and nested settings in other forms. It turns "true" into a
 * bool. */
static const char *noted_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (cJSON_IsBool(item))
        return cJSON_IsTrue(item) ? "true" : "false";
    return cJSON_GetStringValue(item);
}

/* Every string of one must be in the other. */
static int noted_compare(const cJSON *one, const cJSON *other, struct df_err *err)
{
    const cJSON *setting;
    cJSON_ArrayForEach (setting, one) {
        const char *here = cJSON_GetStringValue(setting),
                   *there = noted_text(other, setting->string);
        if (here && !df_streq(here, there))
            return noted_refuse(setting->string, there ? there : "not set", err);
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
