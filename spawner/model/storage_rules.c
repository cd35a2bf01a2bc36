/*
 * storage_rules.c - what spec.storage may say: its path, its settings, which settings are secrets
 * (one table, with the way that each has instead), and how each type locks.
 */
#include "common/base/nearest.h"
#include "spawner/model/rules.h"
#include "spawner/model/storage_types.h"

#define MAX_DEPTH 3 /* of settings in settings: assume_role.tags.x */

/* ---- secrets ---- */

/* Settings of backends that are secrets, and the integration or the variable that has them. */
static const struct secret_setting {
    const char *name, *type;
    const char *provider; /* of spec.integrations; or NULL */
    const char *variable; /* of an entry of spec.secrets; or NULL */
} secret_settings[] = {
    {"access_key", "s3", "aws", NULL},
    {"secret_key", "s3", "aws", NULL},
    {"token", "s3", "aws", NULL},
    {"web_identity_token", "s3", NULL, NULL},
    {"sse_customer_key", "s3", NULL, "AWS_SSE_CUSTOMER_KEY"},
    {"access_key", "azurerm", NULL, "ARM_ACCESS_KEY"},
    {"sas_token", "azurerm", NULL, "ARM_SAS_TOKEN"},
    {"client_secret", "azurerm", "azurerm", NULL},
    {"client_certificate", "azurerm", NULL, "ARM_CLIENT_CERTIFICATE"},
    {"client_certificate_password", "azurerm", NULL, "ARM_CLIENT_CERTIFICATE_PASSWORD"},
    {"oidc_token", "azurerm", NULL, "ARM_OIDC_TOKEN"},
    {"oidc_request_token", "azurerm", NULL, "ARM_OIDC_REQUEST_TOKEN"},
    {"customer_provided_key", "azurerm", NULL, "ARM_CUSTOMER_PROVIDED_KEY"},
    {"credentials", "gcs", "gcp", NULL},
    {"access_token", "gcs", NULL, "GOOGLE_OAUTH_ACCESS_TOKEN"},
    {"encryption_key", "gcs", NULL, "GOOGLE_ENCRYPTION_KEY"},
    {"username", "http", NULL, "TF_HTTP_USERNAME"},
    {"password", "http", NULL, "TF_HTTP_PASSWORD"},
    {"client_private_key_pem", "http", NULL, "TF_HTTP_CLIENT_PRIVATE_KEY_PEM"},
};

/* The row of this type if there is one, else of another type: the name says what it is. */
static const struct secret_setting *find_secret(const char *name, const char *type)
{
    const struct secret_setting *found = NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(secret_settings); i++) {
        const struct secret_setting *s = &secret_settings[i];
        if (df_streq(s->name, name) && (!found || df_streq(s->type, type)))
            found = s;
    }
    return found;
}

static void refuse_secret(const struct secret_setting *s, const char *type,
                          const struct df_path *path, struct df_faults *f)
{
    bool is_own = df_streq(s->type, type);
    if (is_own && s->provider)
        df_fault(f, path, "is a secret; use an integration (spec.integrations) of the provider %s",
                 s->provider);
    else if (is_own && s->variable)
        df_fault(f, path,
                 "is a secret; store it with `dayfly secret set NAME KEY` and use spec.secrets: "
                 "[{name: NAME, keys: [KEY], as: env, env: %s}]",
                 s->variable);
    else
        df_fault(f, path, "is a secret; use spec.integrations or spec.secrets");
}

/* "https://user:password@host" */
static bool has_user(const char *value)
{
    const char *host = strstr(value, "://");
    size_t n = host ? strcspn(host + 3, "/?#") : 0;
    return host && memchr(host + 3, '@', n);
}

/* A header of the backend http that authenticates. */
static bool is_secret_header(const char *name)
{
    static const char *const words[] = {"authorization", "token",  "secret",
                                        "password",      "cookie", "key"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void check_headers(const cJSON *headers, const struct df_path *path, struct df_faults *f)
{
    const cJSON *header;
    cJSON_ArrayForEach (header, headers) {
        const struct df_path here = {path, header->string, 0};
        if (cJSON_IsObject(headers) && is_secret_header(header->string))
            df_fault(f, &here,
                     "is a secret; the backend takes a user and a password alone: TF_HTTP_USERNAME "
                     "and TF_HTTP_PASSWORD of spec.secrets");
    }
}

/* ---- settings ---- */

/* A setting is a string, number or bool, or an object or list of these (assume_role, endpoints). */
static void check_value(const cJSON *value, const char *type, const struct df_path *path, int depth,
                        struct df_faults *f)
{
    const cJSON *item;
    int i = 0;
    const struct secret_setting *secret = value->string ? find_secret(value->string, type) : NULL;
    if (secret)
        refuse_secret(secret, type, path, f);
    if (cJSON_IsString(value) && has_user(value->valuestring))
        df_fault(f, path,
                 "has a user in its URL: credentials come from spec.integrations or "
                 "spec.secrets");
    if (cJSON_IsString(value) || cJSON_IsBool(value) || df_json_is_number(value))
        return;
    if ((!cJSON_IsObject(value) && !cJSON_IsArray(value)) || depth == MAX_DEPTH || !value->child) {
        df_fault(f, path,
                 "must be a string, a number, true or false, or an object or list of them");
        return;
    }
    cJSON_ArrayForEach (item, value) {
        const struct df_path here = {path, item->string, i++};
        check_value(item, type, &here, depth + 1, f);
    }
}

/* A setting that was meant by a name that is near to this one; NULL: none. */
static const char *misspelt(const cJSON *config, const char *name)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    const cJSON *setting;
    cJSON_ArrayForEach (setting, config)
        df_nearest(name, setting->string, &best, &distance);
    return best;
}

static void check_required(const cJSON *config, const char *name, const char *type,
                           const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, name, 0};
    const cJSON *given = df_json_at(config, name);
    const char *meant = given ? NULL : misspelt(config, name);
    if (meant)
        df_fault(f, &here, "is required for type %s; is \"%.64s\" meant to be it?", type, meant);
    else if (!given)
        df_fault(f, &here, "is required for type %s", type);
    else if (df_str_empty(cJSON_GetStringValue(given)))
        df_fault(f, &here, "must be a string");
}

static void check_config(const cJSON *config, const struct df_storage_type *s,
                         const struct df_path *path, struct df_faults *f)
{
    const cJSON *setting;
    cJSON_ArrayForEach (setting, config) {
        const struct df_path here = {path, setting->string, 0};
        if (s->path_key && df_streq(setting->string, s->path_key))
            df_fault(f, &here, "is set by spec.storage.path");
        check_value(setting, s->name, &here, 0, f);
    }
    for (const char *const *name = s->required; *name; name++)
        check_required(config, *name, s->name, path, f);
}

/* ---- locks ---- */

/* A state that nothing locks is lost by two runs at once, and nobody would be told. */
static void check_s3(const cJSON *config, const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, "use_lockfile", 0};
    const cJSON *lockfile = df_json_at(config, "use_lockfile");
    bool has_table = !df_str_empty(df_json_str(config, "dynamodb_table"));
    if (lockfile && !cJSON_IsBool(lockfile))
        df_fault(f, &here, "must be true or false");
    else if (!cJSON_IsTrue(lockfile) && !has_table)
        df_fault(f, &here,
                 "must be true without a dynamodb_table: nothing else would lock the state");
}

static bool is_web_address(const char *s)
{
    return s && (df_starts_with(s, "https://") || df_starts_with(s, "http://"));
}

/* The address of a store. Two executors with one store would not be seen with it in two forms. */
static void check_store(const cJSON *config, const char *name, const struct df_path *path,
                        struct df_faults *f)
{
    const struct df_path here = {path, name, 0};
    const cJSON *given = df_json_at(config, name);
    const char *url = cJSON_GetStringValue(given);
    if (!given || (url && !*url))
        return;
    if (!is_web_address(url) || url[strcspn(url, "?#% \\")])
        df_fault(f, &here, "must be a URL such as https://HOST:PORT");
    else if (df_storage_has_bucket_host(url))
        df_fault(f, &here,
                 "has the name of a bucket in its host: name the bucket in bucket alone, and the "
                 "address without it");
}

static void check_http(const cJSON *config, const struct df_path *path, struct df_faults *f)
{
    static const char *const addresses[] = {"address", "lock_address", "unlock_address"};
    const struct df_path headers = {path, "headers", 0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(addresses); i++) {
        const struct df_path here = {path, addresses[i], 0};
        const cJSON *given = df_json_at(config, addresses[i]);
        if (given && !is_web_address(cJSON_GetStringValue(given)))
            df_fault(f, &here, "must be a URL with https:// or http://");
    }
    check_headers(df_json_at(config, "headers"), &headers, f);
}

/* ---- the path ---- */

/* True for a path with a second spelling: with it two executors could share one state unnoticed.
 * Azure takes a backslash for a slash, and drops dots at the end. */
static bool is_odd_path(const char *path)
{
    return strstr(path, "..") || strstr(path, "//") || strstr(path, "./") || strchr(path, '%') ||
           strchr(path, '\\') || df_ends_with(path, "/") || df_ends_with(path, ".");
}

/* These directories show other ones under names of their own, another one to each process. */
static bool is_in_kernel_directory(const char *path)
{
    static const char *const directories[] = {"/proc/", "/sys/", "/dev/"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(directories); i++)
        if (df_starts_with(path, directories[i]))
            return true;
    return false;
}

static void check_path(const char *path_value, const struct df_storage_type *s,
                       const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, "path", 0};
    bool local = df_streq(s->name, "local");
    if (!path_value) {
        if (local)
            df_fault(f, &here, "is required for type %s", s->name);
        return;
    }
    if (df_streq(s->name, "module") || df_streq(s->name, "http")) {
        df_fault(f, &here, "is not allowed for type %s: %s", s->name,
                 df_streq(s->name, "http") ? "config.address names the state"
                                           : "the module configures its own backend");
        return;
    }
    if (local && *path_value != '/')
        df_fault(f, &here, "must be absolute: a step's own directory does not outlive it");
    if (!local && *path_value == '/')
        df_fault(f, &here, "may not begin with /");
    if (is_odd_path(path_value))
        df_fault(f, &here, "may not have .., //, ./, \\ or %% in it, nor end with / or .");
    if (!local && path_value[strcspn(path_value, "?#")])
        df_fault(f, &here, "may not have ? or # in it");
    if (local && is_in_kernel_directory(path_value))
        df_fault(f, &here, "may not be in /proc, /sys or /dev: no file lasts there");
}

void df_rule_storage(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const struct df_storage_type *s = df_storage_type_find(df_json_str(value, "type"));
    const cJSON *config = df_json_at(value, "config");
    const struct df_path here = {path, "config", 0}, override = {path, "overrideBackend", 0};
    check_path(df_json_str(value, "path"), s, path, f);
    if (!s->has_config && config && config->child)
        df_fault(f, &here, "is for other types than %s", s->name);
    if (df_streq(s->name, "module") && df_json_bool(value, "overrideBackend", false))
        df_fault(f, &override, "is for other types than module");
    check_config(config, s, &here, f);
    if (df_streq(s->name, "s3") && df_json_at(config, "bucket"))
        check_s3(config, &here, f);
    for (const char *const *name = s->stores; *name; name++)
        check_store(config, *name, &here, f);
    if (df_streq(s->name, "http"))
        check_http(config, &here, f);
}
