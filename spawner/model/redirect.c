#include "spawner/model/redirect.h"

#include "common/base/limits.h"
#include "spawner/model/storage_types.h"

static const struct redirect {
    const char *type, *variable;
    const char *setting; /* that the variable stands for; it comes first */
    const char *named;   /* the newer name of the setting, which comes before both; or NULL */
} redirects[] = {
    {"s3", "AWS_ENDPOINT_URL_S3", "endpoint", "endpoints.s3"},
    {"s3", "AWS_ENDPOINT_URL", "endpoint", "endpoints.s3"},
    {"s3", "AWS_S3_ENDPOINT", "endpoint", "endpoints.s3"},
    {"azurerm", "ARM_ENVIRONMENT", "environment", NULL},
    {"azurerm", "ARM_METADATA_HOSTNAME", "metadata_host", NULL},
    {"azurerm", "ARM_METADATA_HOST", "metadata_host", NULL},
    {"gcs", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "storage_custom_endpoint", NULL},
    {"gcs", "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "storage_custom_endpoint", NULL},
    {"gcs", "STORAGE_EMULATOR_HOST", "storage_custom_endpoint", NULL},
};

static const struct redirect *find(const char *type, const char *variable)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(redirects); i++)
        if (df_streq(redirects[i].type, type) && df_streq(redirects[i].variable, variable))
            return &redirects[i];
    return NULL;
}

static bool has_setting(const cJSON *config, const char *name)
{
    return name && !df_str_empty(df_json_str(config, name));
}

/* Is the place the same with this value of the setting? */
static bool is_same_place(const cJSON *storage, const char *setting, const char *value)
{
    const struct df_storage_type *type = df_storage_type_find(df_json_str(storage, "type"));
    DF_BUF struct df_buf one = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_BUF struct df_buf other = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *config = cJSON_Duplicate(df_json_at(storage, "config"), true);
    const char *path = df_json_str(storage, "path");
    if (!value || df_json_set_str(config, setting, value, NULL) < 0)
        return false;
    type->place(&one, df_json_at(storage, "config"), path);
    type->place(&other, config, path);
    bool same = !one.failed && !other.failed && df_streq(df_buf_str(&one), df_buf_str(&other));
    return same;
}

const char *df_redirect_setting(const cJSON *storage, const char *variable, const char *value)
{
    const struct redirect *r = find(df_json_str(storage, "type"), variable);
    const cJSON *config = df_json_at(storage, "config");
    if (!r || has_setting(config, r->setting) || has_setting(config, r->named) ||
        is_same_place(storage, r->setting, value))
        return NULL;
    return r->named ? r->named : r->setting;
}

int df_redirect_check(const cJSON *storage, const cJSON *variables, const char *reason,
                      struct df_err *err)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, variables) {
        const char *setting = df_redirect_setting(storage, v->string, cJSON_GetStringValue(v));
        if (setting)
            return df_fail_reason(err, DF_ERR_USER, reason,
                                  "environment: %s would lead the state to another place than the "
                                  "executor's spec.storage says: set spec.storage.config.%s, which "
                                  "comes first",
                                  v->string, setting);
    }
    return 0;
}
