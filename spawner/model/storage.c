/*
 * Where a state is kept when dayfly does not keep it: the settings of tofu's own backends.
 */
#include "spawner/model/model.h"
#include "spawner/model/rules.h"

#define MAX_REQUIRED 3

struct storage {
    const char *type;
    const char *path_key; /* the backend's setting that spec.storage.path becomes; NULL: none */
    const char *required[MAX_REQUIRED + 1];
};

static const struct storage storages[] = {
    {"managed", NULL, {NULL}},
    {"s3", "key", {"bucket", "region"}},
    {"azurerm", "key", {"resource_group_name", "storage_account_name", "container_name"}},
    {"gcs", "prefix", {"bucket"}},
    {"local", "path", {NULL}},
};

/* Settings of backends that are secrets: those come from integrations, by the environment. */
static const char *const secret_settings[] = {
    "access_key",       "secret_key",    "token",
    "sas_token",        "client_secret", "client_certificate_password",
    "credentials",      "access_token",  "encryption_key",
    "sse_customer_key", "oidc_token",    "oidc_request_token",
    "password",
};

static const struct storage *find_storage(const char *type)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(storages); i++)
        if (df_streq(storages[i].type, type))
            return &storages[i];
    return NULL;
}

const char *df_storage_path_key(const char *type)
{
    const struct storage *s = find_storage(type);
    return s ? s->path_key : NULL;
}

static void check_setting(const cJSON *setting, const struct storage *s, const struct df_path *path,
                          struct df_faults *f)
{
    const struct df_path here = {path, setting->string, 0};
    if (!cJSON_IsString(setting) && !cJSON_IsBool(setting) && !cJSON_IsNumber(setting))
        df_fault(f, &here, "must be a string, a number, true or false");
    if (df_streq(setting->string, s->path_key))
        df_fault(f, &here, "is set by spec.storage.path");
    for (size_t i = 0; i < DF_ARRAY_SIZE(secret_settings); i++)
        if (df_streq(setting->string, secret_settings[i]))
            df_fault(f, &here, "is a secret; use spec.integrations");
}

static void check_path(const char *path_value, const struct storage *s, const struct df_path *path,
                       struct df_faults *f)
{
    const struct df_path here = {path, "path", 0};
    bool local = df_streq(s->type, "local");
    if (!path_value) {
        if (s->path_key)
            df_fault(f, &here, "is required for type %s", s->type);
        return;
    }
    if (local && *path_value != '/')
        df_fault(f, &here, "must be absolute: a step's own directory does not outlive it");
    if (!local && *path_value == '/')
        df_fault(f, &here, "may not begin with /");
    if (strstr(path_value, "..") || strstr(path_value, "//"))
        df_fault(f, &here, "may not have .. or // in it");
}

void df_rule_storage(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const struct storage *s = find_storage(df_json_str(value, "type"));
    const cJSON *config = df_json_at(value, "config");
    const struct df_path here = {path, "config", 0};
    check_path(df_json_str(value, "path"), s, path, f);
    if (!s->path_key && config && config->child)
        df_fault(f, &here, "is for other types than %s", s->type);
    for (const cJSON *c = config ? config->child : NULL; c; c = c->next)
        check_setting(c, s, &here, f);
    for (const char *const *name = s->required; *name; name++) {
        const struct df_path setting = {&here, *name, 0};
        if (!df_json_at(config, *name))
            df_fault(f, &setting, "is required for type %s", s->type);
    }
}
