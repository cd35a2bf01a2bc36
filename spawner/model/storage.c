/*
 * spec.storage: the types of storage, their defaults and rules. For a type other than `managed` the
 * state is in one of tofu's own backends, or in the backend of the module.
 */
#include "spawner/model/model.h"
#include "spawner/model/rules.h"

#define MAX_REQUIRED 3
#define MAX_DEPTH 3 /* of settings in settings: assume_role.tags.x */

struct storage {
    const char *type;
    const char *path_key;  /* the backend's setting that spec.storage.path becomes; NULL: none */
    const char *path_form; /* format of the default path of an executor; NULL: no default */
    const char *required[MAX_REQUIRED + 1];
    const char *location[MAX_REQUIRED + 1]; /* the settings that identify the store */
};

static const struct storage storages[] = {
    {"managed", NULL, NULL, {NULL}, {NULL}},
    {"module", NULL, NULL, {NULL}, {NULL}},
    {"s3",
     "key",
     "executors/%s/terraform.tfstate",
     {"bucket", "region"},
     {"bucket", "endpoint", "endpoints.s3"}},
    {"azurerm",
     "key",
     "executors/%s/terraform.tfstate",
     {"resource_group_name", "storage_account_name", "container_name"},
     {"storage_account_name", "container_name", "environment"}},
    /* The backend adds "/default.tfstate" to its prefix. */
    {"gcs", "prefix", "executors/%s", {"bucket"}, {"bucket", "storage_custom_endpoint"}},
    {"local", "path", NULL, {NULL}, {NULL}},
};

/* Settings of backends that are secrets. They come from integrations, as environment variables. */
static const char *const secret_settings[] = {
    "access_key",       "secret_key",         "token",
    "sas_token",        "client_secret",      "client_certificate_password",
    "credentials",      "access_token",       "encryption_key",
    "sse_customer_key", "oidc_token",         "oidc_request_token",
    "password",         "web_identity_token",
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

bool df_storage_is_managed(const cJSON *doc)
{
    const char *type = df_json_str(doc, "spec.storage.type");
    return !type || df_streq(type, "managed");
}

/* ---- defaults ---- */

static int fill_path(cJSON *storage, const struct storage *s, const char *name, struct df_err *err)
{
    if (!s->path_form || !name || df_json_at(storage, "path"))
        return 0;
    const char *end = strstr(s->path_form, "%s");
    DF_FREE char *path =
        df_strf("%.*s%s%s", (int)(end - s->path_form), s->path_form, name, end + 2);
    return path ? df_json_set_str(storage, "path", path, err) : df_fail_oom(err);
}

/* The backend s3 does not lock unless a setting turns it on. */
static int fill_lock(cJSON *storage, const struct storage *s, struct df_err *err)
{
    const cJSON *config = df_json_at(storage, "config");
    if (!df_streq(s->type, "s3") || !cJSON_IsObject(config) ||
        df_json_at(config, "dynamodb_table") || df_json_at(config, "use_lockfile"))
        return 0;
    return df_json_set(df_json_object_at(storage, "config"), "use_lockfile", cJSON_CreateTrue(),
                       err);
}

int df_storage_fill(cJSON *spec, const char *name, struct df_err *err)
{
    cJSON *storage = cJSON_GetObjectItemCaseSensitive(spec, "storage");
    const struct storage *s = find_storage(df_json_str(storage, "type"));
    if (!s)
        return 0;
    return fill_path(storage, s, name, err) < 0 ? -1 : fill_lock(storage, s, err);
}

/* ---- one executor for each location ---- */

int df_storage_location(const cJSON *executor, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *spec = cJSON_Duplicate(df_json_at(executor, "spec"), true);
    if (!spec)
        return df_fail_oom(err);
    if (df_storage_fill(spec, df_json_str(executor, "metadata.name"), err) < 0)
        return -1;
    const cJSON *storage = df_json_at(spec, "storage");
    const struct storage *s = find_storage(df_json_str(storage, "type"));
    const char *path = df_json_str(storage, "path");
    if (!s || !s->path_key || !path) {
        *ret = NULL;
        return 0;
    }
    (void)df_buf_adds(&text, s->type);
    for (const char *const *name = s->location; *name; name++) {
        const char *value = df_json_str(df_json_at(storage, "config"), *name);
        (void)df_buf_addf(&text, " %s", value ? value : "-");
    }
    (void)df_buf_addf(&text, " %s", path);
    *ret = df_buf_take(&text);
    return *ret ? 0 : df_fail_oom(err);
}

/* ---- checks ---- */

static bool is_secret(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(secret_settings); i++)
        if (df_streq(name, secret_settings[i]))
            return true;
    return false;
}

/* A setting is a string, number or bool, or an object or list of these (assume_role, endpoints). */
static void check_value(const cJSON *value, const struct df_path *path, int depth,
                        struct df_faults *f)
{
    const cJSON *item;
    int i = 0;
    if (value->string && is_secret(value->string))
        df_fault(f, path, "is a secret; use spec.integrations or spec.secrets");
    if (cJSON_IsString(value) || cJSON_IsBool(value) || cJSON_IsNumber(value))
        return;
    if ((!cJSON_IsObject(value) && !cJSON_IsArray(value)) || depth == MAX_DEPTH || !value->child) {
        df_fault(f, path,
                 "must be a string, a number, true or false, or an object or list of them");
        return;
    }
    cJSON_ArrayForEach (item, value) {
        const struct df_path here = {path, item->string, i++};
        check_value(item, &here, depth + 1, f);
    }
}

static void check_setting(const cJSON *setting, const struct storage *s, const struct df_path *path,
                          struct df_faults *f)
{
    const struct df_path here = {path, setting->string, 0};
    if (df_streq(setting->string, s->path_key))
        df_fault(f, &here, "is set by spec.storage.path");
    check_value(setting, &here, 0, f);
}

/* True for a path with a second spelling: with it two executors could share one state unnoticed. */
static bool is_odd_path(const char *path)
{
    return strstr(path, "..") || strstr(path, "//") || strstr(path, "/./") || strchr(path, '%') ||
           df_starts_with(path, "./") || df_ends_with(path, "/") || df_ends_with(path, "/.") ||
           df_streq(path, ".");
}

static void check_path(const char *path_value, const struct storage *s, const struct df_path *path,
                       struct df_faults *f)
{
    const struct df_path here = {path, "path", 0};
    bool local = df_streq(s->type, "local");
    if (!path_value) {
        if (local)
            df_fault(f, &here, "is required for type %s", s->type);
        return;
    }
    if (df_streq(s->type, "module")) {
        df_fault(f, &here, "is not allowed for type module: the module configures its own backend");
        return;
    }
    if (local && *path_value != '/')
        df_fault(f, &here, "must be absolute: a step's own directory does not outlive it");
    if (!local && *path_value == '/')
        df_fault(f, &here, "may not begin with /");
    if (is_odd_path(path_value))
        df_fault(f, &here, "may not have .., //, /./ or %% in it, nor end with /");
}

void df_rule_storage(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const struct storage *s = find_storage(df_json_str(value, "type"));
    const cJSON *config = df_json_at(value, "config");
    const struct df_path here = {path, "config", 0}, override = {path, "overrideBackend", 0};
    check_path(df_json_str(value, "path"), s, path, f);
    if (!s->path_key && config && config->child)
        df_fault(f, &here, "is for other types than %s", s->type);
    if (df_streq(s->type, "module") && df_json_bool(value, "overrideBackend", false))
        df_fault(f, &override, "is for other types than module");
    for (const cJSON *c = config ? config->child : NULL; c; c = c->next)
        check_setting(c, s, &here, f);
    for (const char *const *name = s->required; *name; name++) {
        const struct df_path setting = {&here, *name, 0};
        const cJSON *given = df_json_at(config, *name);
        if (!given)
            df_fault(f, &setting, "is required for type %s", s->type);
        else if (cJSON_IsObject(given) || cJSON_IsArray(given))
            df_fault(f, &setting, "must be a string");
    }
}
