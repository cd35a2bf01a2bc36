/*
 * The environment of an executor as settings: kinds of values, the tables of all variables, then
 * what belongs together: Redis, storage, authorities.
 */
#include "common/terrakube/settings.h"

#include <strings.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "common/crypto/truststore.h"
#include "common/terrakube/bindings.h"

/* ---- values ---- */

/* NULL: not set, empty, or a placeholder that Spring did not replace. */
static const char *value_of(const struct df_strs *env, const char *name)
{
    const char *v = df_strs_get_env(env, name);
    if (df_str_empty(v) || (df_starts_with(v, "${") && df_ends_with(v, "}")))
        return NULL;
    return v;
}

/* Terrakube's API gives a pod that it makes one Secret and what the workspace asks for; dayfly's
 * service has an environment of its own. */
static int fail_missing(const struct df_terrakube_settings *s, const char *name, struct df_err *err)
{
    return df_fail_reason(
        err, DF_ERR_USER, "SettingMissing",
        "%s is not set. Terrakube's chart has it in the ConfigMap terrakube-executor-config%s",
        name,
        s->is_pod_of_api
            ? ", which the pod gets if the workspace has the environment variable "
              "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP=terrakube-executor-config (API 2.31 or later), "
              "or in the Secret that the API's ExecutorEphemeralSecret names"
            : " or, if that does not exist, in the Secret terrakube-executor-secrets: name them in "
              "the values terrakube.configMaps and terrakube.secrets of dayfly's chart, or set the "
              "variable in the environment of the service");
}

static int fail_secret_missing(const struct df_terrakube_settings *s, const char *name,
                               struct df_err *err)
{
    return df_fail_reason(
        err, DF_ERR_USER, "SettingMissing",
        "%s is not set. Terrakube's chart has it in the Secret terrakube-executor-secrets: %s",
        name,
        s->is_pod_of_api ? "ExecutorEphemeralSecret of the API must name the Secret that has it"
                         : "name the Secret that has it in the value terrakube.secrets of dayfly's "
                           "chart, or set "
                           "the variable in the environment of the service");
}

static int fail_value(struct df_err *err, const char *name, const char *value, const char *allowed)
{
    return df_fail_reason(err, DF_ERR_USER, "SettingInvalid", "%s is \"%.200s\", and must be %s",
                          name, value, allowed);
}

/* As Spring's StringToBooleanConverter does. */
static int read_bool(const struct df_strs *env, const char *name, bool fallback, bool *ret,
                     struct df_err *err)
{
    static const char *const words[] = {"false", "off", "no", "0", "true", "on", "yes", "1"};
    const char *v = value_of(env, name);
    *ret = fallback;
    if (!v)
        return 0;
    v += strspn(v, " \t");
    size_t n = strcspn(v, " \t\r\n");
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strlen(words[i]) == n && strncasecmp(v, words[i], n) == 0) {
            *ret = i >= 4;
            return 0;
        }
    return fail_value(err, name, v, "true or false");
}

static int read_number(const struct df_strs *env, const char *name, int64_t min, int64_t max,
                       int64_t fallback, int64_t *ret, struct df_err *err)
{
    const char *v = value_of(env, name);
    *ret = fallback;
    if (!v || df_parse_i64(v, min, max, ret, NULL) == 0)
        return 0;
    DF_FREE char *allowed =
        df_strf("a whole number from %lld to %lld", (long long)min, (long long)max);
    return allowed ? fail_value(err, name, v, allowed) : df_fail_oom(err);
}

/* "host:port,host:port". */
static int read_nodes(const struct df_strs *env, const char *name, struct df_strs *ret,
                      struct df_err *err)
{
    const char *v = value_of(env, name), *all = v;
    while (v && *v) {
        size_t n = strcspn(v, ", \t\r\n");
        if (n)
            (void)df_strs_addf(ret, "%.*s", (int)n, v);
        v += n + (v[n] != '\0');
    }
    for (size_t i = 0; i < ret->len; i++) {
        const char *colon = strrchr(ret->items[i], ':');
        int64_t port = 0;
        if (!colon || colon == ret->items[i] || df_parse_i64(colon + 1, 1, 65535, &port, NULL) < 0)
            return fail_value(err, name, all, "host:port, with commas between them");
    }
    if (ret->len > DF_LIMIT_TERRAKUBE_NODES)
        return df_fail_reason(err, DF_ERR_USER, "SettingInvalid", "%s has %zu nodes; %d are taken",
                              name, ret->len, DF_LIMIT_TERRAKUBE_NODES);
    return df_strs_check(ret, err);
}

/* ---- the tables ---- */

#define AT(member) offsetof(struct df_terrakube_settings, member)

static const struct {
    const char *name;
    size_t at;
    bool is_url; /* without a slash at its end */
} texts[] = {
    {"AzBuilderApiUrl", AT(api_url), true},
    {"TerrakubeApiUrl", AT(public_url), true},
    {"InternalSecret", AT(internal_secret), false},
    {"TerrakubeRegistryDomain", AT(registry_domain), false},
    {"CustomTerraformReleasesUrl", AT(terraform_releases_url), false},
    {"CustomTofuReleasesUrl", AT(tofu_releases_url), false},
    {"TerrakubeToolsRepository", AT(tools_repository), false},
    {"TerrakubeToolsBranch", AT(tools_branch), false},
    {"AwsTerraformStateAccessKey", AT(aws.access_key), false},
    {"AwsTerraformStateSecretKey", AT(aws.secret_key), false},
    {"AwsTerraformStateBucketName", AT(aws.bucket), false},
    {"AwsTerraformStateRegion", AT(aws.region), false},
    {"AwsEndpoint", AT(aws.endpoint), true},
    {"AzureTerraformStateResourceGroup", AT(azure.resource_group), false},
    {"AzureTerraformStateStorageAccountName", AT(azure.account), false},
    {"AzureTerraformStateStorageContainerName", AT(azure.container), false},
    {"AzureTerraformStateStorageAccessKey", AT(azure.access_key), false},
    {"AzureEndpoint", AT(azure.endpoint), true},
    {"GcpTerraformStateBucketName", AT(gcp.bucket), false},
    {"GcpTerraformStateProjectId", AT(gcp.project), false},
    {"GcpEndpoint", AT(gcp.endpoint), true},
    {"TerrakubeRedisHostname", AT(redis.host), false},
    {"TerrakubeRedisUsername", AT(redis.user), false},
    {"TerrakubeRedisPassword", AT(redis.password), false},
    {"TerrakubeRedisSentinelMaster", AT(redis.sentinel_primary), false},
    {"TerrakubeRedisSentinelUsername", AT(redis.sentinel_user), false},
    {"TerrakubeRedisSentinelPassword", AT(redis.sentinel_password), false},
    {"HOME", AT(home), false},
};

static const struct {
    const char *name;
    size_t at;
    bool fallback;
} switches[] = {
    {"AwsIncludeBackendKeys", AT(aws.include_keys), true},
    {"AwsEnableRoleAuth", AT(aws.role_auth), false},
    {"AwsUseLockfile", AT(aws.use_lockfile), false},
    {"TerrakubeRedisSSL", AT(redis.tls), false},
    {"LogViaApi", AT(log_via_api), false},
    {"TerrakubeEnableColorOutput", AT(colour), true},
    {"TerrakubeEnableSecurity", AT(is_secured), true},
    {"DAYFLY_TERRAKUBE_HTTP_CREDENTIALS", AT(http_credentials), false},
};

static char **text_at(struct df_terrakube_settings *s, size_t at)
{
    return (char **)((char *)s + at);
}

static int read_texts(const struct df_strs *env, struct df_terrakube_settings *s,
                      struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        char **to = text_at(s, texts[i].at);
        if (df_str_set(to, value_of(env, texts[i].name), err) < 0)
            return -1;
        for (size_t n = *to ? strlen(*to) : 0; texts[i].is_url && n && (*to)[n - 1] == '/'; n--)
            (*to)[n - 1] = '\0';
    }
    return 0;
}

static int read_switches(const struct df_strs *env, struct df_terrakube_settings *s,
                         struct df_err *err)
{
    bool disabled = false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(switches); i++)
        if (read_bool(env, switches[i].name, switches[i].fallback,
                      (bool *)((char *)s + switches[i].at), err) < 0)
            return -1;
    if (read_bool(env, "ExecutorFlagDisableAcknowledge", false, &disabled, err) < 0)
        return -1;
    s->acknowledges = !disabled;
    return 0;
}

static int check_addresses(const struct df_terrakube_settings *s, struct df_err *err)
{
    if (!s->internal_secret)
        return fail_secret_missing(s, "InternalSecret", err);
    if (!s->api_url)
        return fail_missing(s, "AzBuilderApiUrl", err);
    if (!s->public_url)
        return fail_missing(s, "TerrakubeApiUrl", err);
    return s->registry_domain ? 0 : fail_missing(s, "TerrakubeRegistryDomain", err);
}

/* ---- Redis ---- */

static int read_truststore(const struct df_strs *env, struct df_terrakube_settings *s,
                           struct df_err *err)
{
    static const char name[] = "TerrakubeRedisTruststorePath";
    const char *path = value_of(env, name);
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_LIMIT_TRUST), pem = DF_BUF_INIT(DF_LIMIT_TRUST);
    struct df_err why = {0};
    if (!path)
        return df_str_set(&s->redis.ca_pem, s->ca_pem, err);
    if (df_starts_with(path, "file:"))
        path += strlen("file:");
    if (df_fs_read(path, &content, &why) < 0 ||
        df_truststore_read(df_buf_str(&content), content.len,
                           value_of(env, "TerrakubeRedisTruststorePassword"), &pem, &why) < 0)
        return df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                              "%s is %s, which must be a truststore (PEM, PKCS#12 or JKS) for "
                              "TerrakubeRedisTruststorePassword: %s",
                              name, path, why.message);
    return df_check_alloc(s->redis.ca_pem = df_buf_take(&pem), err);
}

static int check_redis(const struct df_terrakube_settings *s, struct df_err *err)
{
    bool sentinel = s->redis.sentinels.len > 0;
    if (sentinel != (s->redis.sentinel_primary != NULL))
        return fail_missing(
            s, sentinel ? "TerrakubeRedisSentinelMaster" : "TerrakubeRedisSentinelNodes", err);
    if (df_terrakube_has_redis(s) || s->log_via_api)
        return 0;
    return fail_missing(s, "TerrakubeRedisHostname", err);
}

static int read_redis(const struct df_strs *env, struct df_terrakube_settings *s,
                      struct df_err *err)
{
    int64_t port = 0, redirects = 0;
    if (read_number(env, "TerrakubeRedisPort", 1, 65535, 6379, &port, err) < 0 ||
        read_number(env, "TerrakubeRedisTimeout", 1, 600000, 10000, &s->redis.timeout_ms, err) <
            0 ||
        read_number(env, "TerrakubeRedisClusterMaxRedirects", 0, 100, 0, &redirects, err) < 0 ||
        read_nodes(env, "TerrakubeRedisClusterNodes", &s->redis.cluster_nodes, err) < 0 ||
        read_nodes(env, "TerrakubeRedisSentinelNodes", &s->redis.sentinels, err) < 0 ||
        check_redis(s, err) < 0)
        return -1;
    s->redis.port = (int)port;
    s->redis.max_redirects = (int)redirects;
    return s->redis.tls ? read_truststore(env, s, err) : 0;
}

/* ---- storage ---- */

static int read_state(const struct df_strs *env, struct df_terrakube_settings *s,
                      struct df_err *err)
{
    static const char *const names[] = {
        [DF_TERRAKUBE_STATE_LOCAL] = "LocalTerraformStateImpl",
        [DF_TERRAKUBE_STATE_AWS] = "AwsTerraformStateImpl",
        [DF_TERRAKUBE_STATE_AZURE] = "AzureTerraformStateImpl",
        [DF_TERRAKUBE_STATE_GCP] = "GcpTerraformStateImpl",
        [DF_TERRAKUBE_STATE_API] = "ApiTerraformStateImpl",
    };
    const char *v = value_of(env, "TerraformStateType");
    if (!v)
        return fail_missing(s, "TerraformStateType", err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (strcasecmp(v, names[i]) == 0) {
            s->state = (enum df_terrakube_state)i;
            return 0;
        }
    return fail_value(err, "TerraformStateType", v,
                      "LocalTerraformStateImpl, AwsTerraformStateImpl, AzureTerraformStateImpl, "
                      "GcpTerraformStateImpl or ApiTerraformStateImpl");
}

/* Base64 of JSON, in lines or not. */
static int read_google_key(const struct df_strs *env, char **ret, struct df_err *err)
{
    static const char name[] = "GcpTerraformStateCredentials";
    const char *v = value_of(env, name);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_TERRAKUBE_KEY);
    DF_CLEANUP(df_buf_wipe) struct df_buf json = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_KEY);
    for (; v && *v; v++)
        if (!strchr(" \t\r\n", *v))
            (void)df_buf_addc(&text, *v);
    if (!text.len)
        return 0;
    if (df_buf_check(&text, NULL) < 0 ||
        df_base64_decode(df_buf_str(&text), text.len, false, &json, NULL) < 0 ||
        !df_starts_with(df_buf_str(&json), "{"))
        return df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                              "%s must be the base64 of a key of an account of Google, as JSON of "
                              "at most %zu bytes",
                              name, DF_LIMIT_TERRAKUBE_KEY);
    return df_check_alloc(*ret = df_buf_take(&json), err);
}

static int check_aws(const struct df_terrakube_settings *s, struct df_err *err)
{
    if (!s->aws.bucket)
        return fail_missing(s, "AwsTerraformStateBucketName", err);
    if (!s->aws.region && !s->aws.endpoint)
        return fail_missing(s, "AwsTerraformStateRegion", err);
    if (s->aws.role_auth)
        return 0;
    if (!s->aws.access_key)
        return fail_secret_missing(s, "AwsTerraformStateAccessKey", err);
    return s->aws.secret_key ? 0 : fail_secret_missing(s, "AwsTerraformStateSecretKey", err);
}

static int check_azure(const struct df_terrakube_settings *s, struct df_err *err)
{
    if (!s->azure.account)
        return fail_missing(s, "AzureTerraformStateStorageAccountName", err);
    if (!s->azure.container)
        return fail_missing(s, "AzureTerraformStateStorageContainerName", err);
    return s->azure.access_key ? 0
                               : fail_secret_missing(s, "AzureTerraformStateStorageAccessKey", err);
}

static int check_google(const struct df_terrakube_settings *s, struct df_err *err)
{
    if (!s->gcp.bucket)
        return fail_missing(s, "GcpTerraformStateBucketName", err);
    return s->gcp.credentials ? 0 : fail_secret_missing(s, "GcpTerraformStateCredentials", err);
}

static int check_storage(const struct df_terrakube_settings *s, struct df_err *err)
{
    switch (s->state) {
    case DF_TERRAKUBE_STATE_AWS:
        return check_aws(s, err);
    case DF_TERRAKUBE_STATE_AZURE:
        return check_azure(s, err);
    case DF_TERRAKUBE_STATE_GCP:
        return check_google(s, err);
    case DF_TERRAKUBE_STATE_LOCAL:
        return s->home ? 0
                       : df_fail_reason(err, DF_ERR_USER, "SettingMissing",
                                        "HOME is not set: LocalTerraformStateImpl keeps its files "
                                        "below it, on a volume that the API has, too");
    case DF_TERRAKUBE_STATE_API:
        break;
    }
    return 0;
}

/* ---- all of it ---- */

static int read_authorities(const struct df_strs *env, char **ret, struct df_err *err)
{
    const char *root = value_of(env, "SERVICE_BINDING_ROOT");
    DF_BUF struct df_buf own = DF_BUF_INIT(DF_LIMIT_TRUST), all = DF_BUF_INIT(DF_LIMIT_TRUST);
    if (!root)
        return 0;
    if (df_terrakube_bindings_read(root, &own, err) < 0)
        return -1;
    if (!own.len)
        return 0;
    if (df_truststore_system(&all, err) < 0)
        return -1;
    (void)df_buf_addf(&all, "\n%s", df_buf_str(&own));
    if (df_buf_check(&all, err) < 0)
        return -1;
    return df_check_alloc(*ret = df_buf_take(&all), err);
}

static int read_all(const struct df_strs *env, struct df_terrakube_settings *s, struct df_err *err)
{
    const char *batch = value_of(env, "EphemeralFlagBatch");
    s->is_pod_of_api = batch && df_streq(batch, "true");
    if (read_texts(env, s, err) < 0 || read_switches(env, s, err) < 0 ||
        check_addresses(s, err) < 0 || read_state(env, s, err) < 0 ||
        read_google_key(env, &s->gcp.credentials, err) < 0 || check_storage(s, err) < 0)
        return -1;
    return read_authorities(env, &s->ca_pem, err) < 0 ? -1 : read_redis(env, s, err);
}

int df_terrakube_settings_read(const struct df_strs *env, struct df_terrakube_settings *ret,
                               struct df_err *err)
{
    struct df_terrakube_settings s = {0};
    if (read_all(env, &s, err) < 0) {
        df_terrakube_settings_free(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

bool df_terrakube_has_redis(const struct df_terrakube_settings *s)
{
    return s->redis.host || s->redis.sentinels.len || s->redis.cluster_nodes.len;
}

void df_terrakube_settings_free(struct df_terrakube_settings *s)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++)
        df_str_wipe(text_at(s, texts[i].at));
    df_str_wipe(&s->gcp.credentials);
    free(DF_TAKE(s->ca_pem));
    free(DF_TAKE(s->redis.ca_pem));
    df_strs_free(&s->redis.cluster_nodes);
    df_strs_free(&s->redis.sentinels);
}

bool df_terrakube_is_setting(const char *name)
{
    static const char *const others[] = {"ExecutorFlagDisableAcknowledge",
                                         "GcpTerraformStateCredentials",
                                         "TerraformStateType",
                                         "TerrakubeRedisPort",
                                         "TerrakubeRedisTimeout",
                                         "TerrakubeRedisClusterNodes",
                                         "TerrakubeRedisClusterMaxRedirects",
                                         "TerrakubeRedisSentinelNodes",
                                         "TerrakubeRedisTruststorePath",
                                         "TerrakubeRedisTruststorePassword"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++)
        if (df_streq(name, texts[i].name))
            return !df_streq(name, "HOME");
    for (size_t i = 0; i < DF_ARRAY_SIZE(switches); i++)
        if (df_streq(name, switches[i].name))
            return true;
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        if (df_streq(name, others[i]))
            return true;
    return false;
}

bool df_terrakube_is_platform_variable(const char *name)
{
    /* Spring takes names in capitals, too, so they are compared without regard to that. */
    static const char *const names[] = {"InternalSecret", "EphemeralJobData", "EphemeralFlagBatch",
                                        "PatSecret"};
    /* Also of parts that only some versions have, such as AwsTerraformOutputSecretKey. */
    static const char *const beginnings[] = {"AwsTerraform", "AzureTerraform", "GcpTerraform",
                                             "TerrakubeRedis"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < DF_ARRAY_SIZE(beginnings); i++)
        if (strncasecmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}
