#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "common/terrakube/settings.h"
#include "tests/unit/scratch.h"

#define SETTINGS DF_CLEANUP(df_terrakube_settings_free) struct df_terrakube_settings
#define SECRET "dGVzdC1vbmx5LWludGVybmFsLXNlY3JldC0wMTIzNDU2Nzg5YWI="

/* What the chart's Secret and its ConfigMap give a pod; before the split all of it was in the
 * Secret. */
static const char *const of_secret[] = {
    ("InternalSecret=" SECRET),
    "TerrakubeRedisPassword=test-only-redis",
    "AwsTerraformStateAccessKey=minio",
    "AwsTerraformStateSecretKey=minio-secret",
    "AzureTerraformStateStorageAccessKey=",
    "GcpTerraformStateCredentials=",
};
static const char *const of_config_map[] = {
    "AzBuilderApiUrl=http://terrakube-api-service:8080",
    "TerrakubeApiUrl=https://terrakube-api.example.com/",
    "TerrakubeRegistryDomain=terrakube-registry.example.com",
    "TerrakubeEnableSecurity=true",
    "TerrakubeToolsRepository=https://github.com/AzBuilder/terrakube-extensions",
    "TerrakubeToolsBranch=main",
    "ExecutorFlagBatch=false",
    "ExecutorFlagDisableAcknowledge=false",
    "CustomTerraformReleasesUrl=https://releases.hashicorp.com/terraform/index.json",
    "TerrakubeRedisHostname=terrakube-redis-master",
    "TerrakubeRedisPort=6379",
    "TerraformStateType=AwsTerraformStateImpl",
    "AwsTerraformStateBucketName=sample",
    "AwsTerraformStateRegion=us-east-1",
    "AwsEndpoint=http://minio:9000",
    "AzureTerraformStateResourceGroup=",
    "GcpTerraformStateProjectId=${GcpTerraformStateProjectId}",
    "HOME=/home/cnb",
};

static struct df_strs chart(void)
{
    struct df_strs env = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_secret); i++)
        (void)df_strs_add(&env, of_secret[i]);
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_config_map); i++)
        (void)df_strs_add(&env, of_config_map[i]);
    assert_int_equal(df_strs_check(&env, NULL), 0);
    return env;
}

/* The chart's environment with these "NAME=VALUE" instead of its own, or besides. */
static struct df_strs chart_with(const char *const *entries, size_t n)
{
    struct df_strs env = chart();
    for (size_t i = 0; i < n; i++) {
        DF_FREE char *name = strdup(entries[i]);
        *strchr(name, '=') = '\0';
        assert_int_equal(df_strs_set_env(&env, name, strchr(entries[i], '=') + 1), 0);
    }
    return env;
}
#define CHART_WITH(...)                                                                            \
    chart_with((const char *const[]){__VA_ARGS__},                                                 \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void read_settings(const struct df_strs *env, struct df_terrakube_settings *ret)
{
    struct df_err err = {0};
    if (df_terrakube_settings_read(env, ret, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_refused(const struct df_strs *env, const char *reason, const char *said)
{
    struct df_terrakube_settings s;
    struct df_err err = {0};
    assert_int_equal(df_terrakube_settings_read(env, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, said))
        fail_msg("%s: %s", said, err.message);
}

static void the_charts_environment_is_read(void **state)
{
    (void)state;
    DF_STRS struct df_strs env = chart();
    SETTINGS s = {0};
    read_settings(&env, &s);
    assert_string_equal(s.api_url, "http://terrakube-api-service:8080");
    assert_string_equal(s.public_url, "https://terrakube-api.example.com"); /* no slash */
    assert_string_equal(s.internal_secret, SECRET);
    assert_string_equal(s.redis.host, "terrakube-redis-master");
    assert_string_equal(s.redis.password, "test-only-redis");
    assert_int_equal(s.redis.port, 6379);
    assert_int_equal(s.redis.timeout_ms, 10000);
    assert_null(s.redis.user);
    assert_false(s.redis.tls);
    assert_int_equal(s.state, DF_TERRAKUBE_STATE_AWS);
    assert_string_equal(s.aws.bucket, "sample");
    assert_true(s.aws.include_keys && !s.aws.role_auth && !s.aws.use_lockfile);
    assert_null(s.azure.resource_group); /* empty */
    assert_null(s.gcp.project);          /* a placeholder */
    assert_null(s.ca_pem);
    assert_true(s.acknowledges && s.colour && s.is_secured && !s.log_via_api);
}

/* Issue 3515 of Terrakube: the pod gets the Secret alone, and Java says "${TerraformStateType}". */
static void who_has_no_config_map_is_told_how_to_get_it(void **state)
{
    (void)state;
    DF_STRS struct df_strs env = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_secret); i++)
        (void)df_strs_add(&env, of_secret[i]);
    assert_refused(&env, "SettingMissing", "AzBuilderApiUrl is not set");
    assert_refused(&env, "SettingMissing",
                   "terrakube.configMaps and terrakube.secrets of dayfly's chart");
    (void)df_strs_add(&env, "EphemeralFlagBatch=true");
    assert_refused(&env, "SettingMissing",
                   "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP=terrakube-executor-config");
}

static void a_missing_secret_is_told_with_the_way_to_give_it(void **state)
{
    (void)state;
    DF_STRS struct df_strs env = {0};
    assert_refused(&env, "SettingMissing",
                   "in the Secret terrakube-executor-secrets: name the Secret that has it in the "
                   "value terrakube.secrets of dayfly's chart, or set the variable");
    (void)df_strs_add(&env, "EphemeralFlagBatch=true");
    assert_refused(&env, "SettingMissing", "ExecutorEphemeralSecret of the API");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const each[] = {
        "InternalSecret",
        "AzBuilderApiUrl",
        "TerrakubeApiUrl",
        "TerrakubeRegistryDomain",
        "TerraformStateType",
        "TerrakubeRedisHostname",
        "AwsTerraformStateBucketName",
        "AwsTerraformStateAccessKey",
        "AwsTerraformStateSecretKey",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(each); i++) {
        DF_FREE char *empty = df_strf("%s=", each[i]);
        DF_FREE char *literal = df_strf("%s=${%s}", each[i], each[i]);
        DF_FREE char *said = df_strf("%s is not set", each[i]);
        DF_STRS struct df_strs without = CHART_WITH(empty), unbound = CHART_WITH(literal);
        assert_refused(&without, "SettingMissing", said);
        assert_refused(&unbound, "SettingMissing", said);
    }
}

static void each_storage_asks_for_what_is_its_own(void **state)
{
    (void)state;
    DF_STRS struct df_strs role = CHART_WITH(
        "AwsEnableRoleAuth=true", "AwsTerraformStateAccessKey=", "AwsTerraformStateSecretKey=");
    DF_STRS struct df_strs azure = CHART_WITH("TerraformStateType=AzureTerraformStateImpl");
    DF_STRS struct df_strs google =
        CHART_WITH("TerraformStateType=GcpTerraformStateImpl", "GcpTerraformStateBucketName=b");
    DF_STRS struct df_strs local =
        CHART_WITH("TerraformStateType=LocalTerraformStateImpl", "HOME=");
    DF_STRS struct df_strs api = CHART_WITH("TerraformStateType=ApiTerraformStateImpl");
    DF_STRS struct df_strs other = CHART_WITH("TerraformStateType=S3TerraformStateImpl");
    SETTINGS s = {0}, of_api = {0};
    read_settings(&role, &s);
    read_settings(&api, &of_api);
    assert_int_equal(of_api.state, DF_TERRAKUBE_STATE_API);
    assert_refused(&azure, "SettingMissing", "AzureTerraformStateStorageAccountName");
    assert_refused(&google, "SettingMissing", "GcpTerraformStateCredentials");
    assert_refused(&local, "SettingMissing", "HOME");
    assert_refused(&other, "SettingInvalid", "\"S3TerraformStateImpl\"");
}

static void googles_key_is_decoded(void **state)
{
    (void)state;
    DF_STRS struct df_strs good =
        CHART_WITH("TerraformStateType=GcpTerraformStateImpl", "GcpTerraformStateBucketName=b",
                   "GcpTerraformStateCredentials=eyJ0eXBlIjoi\nc2VydmljZV9hY2NvdW50In0=\n");
    DF_STRS struct df_strs bad =
        CHART_WITH("TerraformStateType=GcpTerraformStateImpl", "GcpTerraformStateBucketName=b",
                   "GcpTerraformStateCredentials={'type':'service_account'}");
    DF_FREE char *huge = malloc(2 * DF_LIMIT_TERRAKUBE_KEY);
    memset(huge, 'e', 2 * DF_LIMIT_TERRAKUBE_KEY - 1);
    huge[2 * DF_LIMIT_TERRAKUBE_KEY - 1] = '\0';
    DF_FREE char *entry = df_strf("GcpTerraformStateCredentials=%s", huge);
    DF_STRS struct df_strs large = CHART_WITH("TerraformStateType=GcpTerraformStateImpl", entry);
    assert_refused(&large, "SettingInvalid", "at most 65536 bytes");
    SETTINGS s = {0};
    read_settings(&good, &s);
    assert_string_equal(s.gcp.credentials, "{\"type\":\"service_account\"}");
    assert_refused(&bad, "SettingInvalid", "GcpTerraformStateCredentials must be the base64");
}

static void switches_are_read_as_spring_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool is_on;
    } cases[] = {{"true", true},
                 {"ON", true},
                 {"Yes", true},
                 {"1", true},
                 {" true ", true},
                 {"false", false},
                 {"Off", false},
                 {"no", false},
                 {"0", false},
                 {"", false},
                 {"${TerrakubeRedisSSL}", false}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *entry = df_strf("TerrakubeRedisSSL=%s", cases[i].value);
        DF_STRS struct df_strs env = CHART_WITH(entry);
        SETTINGS s = {0};
        read_settings(&env, &s);
        if (s.redis.tls != cases[i].is_on)
            fail_msg("\"%s\"", cases[i].value);
    }
    DF_STRS struct df_strs typo = CHART_WITH("TerrakubeRedisSSL=ture");
    assert_refused(&typo, "SettingInvalid",
                   "TerrakubeRedisSSL is \"ture\", and must be true or false");
    DF_STRS struct df_strs silent = CHART_WITH("ExecutorFlagDisableAcknowledge=true");
    SETTINGS s = {0};
    read_settings(&silent, &s);
    assert_false(s.acknowledges);
}

static void sentinels_and_nodes_of_a_cluster_are_lists(void **state)
{
    (void)state;
    DF_STRS struct df_strs sentinel =
        CHART_WITH("TerrakubeRedisHostname=", "TerrakubeRedisSentinelMaster=mymaster",
                   "TerrakubeRedisSentinelNodes=a:26379, b:26380");
    DF_STRS struct df_strs cluster = CHART_WITH(
        "TerrakubeRedisHostname=", "TerrakubeRedisClusterNodes=10.0.0.1:7000,[fd00::1]:7001",
        "TerrakubeRedisClusterMaxRedirects=3");
    DF_STRS struct df_strs nameless = CHART_WITH("TerrakubeRedisSentinelNodes=a:26379");
    DF_STRS struct df_strs portless = CHART_WITH("TerrakubeRedisClusterNodes=a");
    DF_STRS struct df_strs port = CHART_WITH("TerrakubeRedisPort=tcp://10.0.0.7:6379");
    SETTINGS s = {0}, c = {0};
    read_settings(&sentinel, &s);
    assert_int_equal(s.redis.sentinels.len, 2);
    assert_string_equal(s.redis.sentinels.items[1], "b:26380");
    assert_string_equal(s.redis.sentinel_primary, "mymaster");
    read_settings(&cluster, &c);
    assert_string_equal(c.redis.cluster_nodes.items[1], "[fd00::1]:7001");
    assert_int_equal(c.redis.max_redirects, 3);
    assert_refused(&nameless, "SettingMissing", "TerrakubeRedisSentinelMaster");
    assert_refused(&portless, "SettingInvalid", "host:port");
    assert_refused(&port, "SettingInvalid", "TerrakubeRedisPort is \"tcp://10.0.0.7:6379\"");
}

static void more_nodes_than_the_limit_are_refused(void **state)
{
    (void)state;
    DF_BUF struct df_buf list = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&list, "TerrakubeRedisClusterNodes=");
    for (int i = 0; i <= DF_LIMIT_TERRAKUBE_NODES; i++)
        (void)df_buf_addf(&list, "n%d:6379,", i);
    DF_STRS struct df_strs env = CHART_WITH(df_buf_str(&list));
    assert_refused(&env, "SettingInvalid", "65 nodes");
}

static void redis_is_not_needed_where_the_log_goes_through_the_api(void **state)
{
    (void)state;
    DF_STRS struct df_strs env = CHART_WITH("LogViaApi=true", "TerrakubeRedisHostname=");
    SETTINGS s = {0};
    read_settings(&env, &s);
    assert_true(s.log_via_api);
    assert_null(s.redis.host);
}

static void a_truststore_is_read_when_tls_is_on(void **state)
{
    (void)state;
    DF_STRS struct df_strs jks =
        CHART_WITH("TerrakubeRedisSSL=true",
                   "TerrakubeRedisTruststorePath=file:tests/fixtures/terrakube/trust.jks",
                   "TerrakubeRedisTruststorePassword=changeit");
    DF_STRS struct df_strs wrong = CHART_WITH(
        "TerrakubeRedisSSL=true", "TerrakubeRedisTruststorePath=tests/fixtures/terrakube/trust.jks",
        "TerrakubeRedisTruststorePassword=hunter22");
    DF_STRS struct df_strs off = CHART_WITH("TerrakubeRedisTruststorePath=/nowhere");
    DF_STRS struct df_strs absent =
        CHART_WITH("TerrakubeRedisSSL=true", "TerrakubeRedisTruststorePath=/nowhere");
    SETTINGS s = {0}, plain = {0};
    read_settings(&jks, &s);
    assert_true(df_starts_with(s.redis.ca_pem, "-----BEGIN CERTIFICATE-----"));
    read_settings(&off, &plain);
    assert_null(plain.redis.ca_pem);
    assert_refused(&absent, "SettingInvalid", "TerrakubeRedisTruststorePath is /nowhere");
    assert_refused(&wrong, "SettingInvalid", "password");
    struct df_err err = {0};
    struct df_terrakube_settings none;
    assert_int_equal(df_terrakube_settings_read(&wrong, &none, &err), -1);
    assert_null(strstr(err.message, "hunter22"));
}

static void write_file(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    assert_int_equal(df_fs_write(path, text, strlen(text), 0600, NULL), 0);
}

/* As a kubelet mounts a Secret: the names lead to "..data". */
static void authorities_of_service_bindings_are_added_to_the_systems(void **state)
{
    const char *root = *state;
    DF_BUF struct df_buf pem = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read("tests/fixtures/terrakube/trust.pem", &pem, NULL), 0);
    DF_FREE char *mount = df_strf("%s/company/..data", root),
                 *ca = df_strf("%s/company/ca.crt", root), *type = df_strf("%s/company/type", root),
                 *other = df_strf("%s/database", root),
                 *entry = df_strf("SERVICE_BINDING_ROOT=%s", root);
    assert_int_equal(df_fs_mkdirs(mount, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(other, 0700, NULL), 0);
    write_file(mount, "ca.crt", df_buf_str(&pem));
    write_file(mount, "type", "ca-certificates\n");
    write_file(other, "type", "postgresql");
    write_file(other, "password", "hunter2");
    assert_int_equal(symlink("..data/ca.crt", ca), 0);
    assert_int_equal(symlink("..data/type", type), 0);
    DF_STRS struct df_strs env = CHART_WITH(entry, "TerrakubeRedisSSL=true");
    SETTINGS s = {0};
    read_settings(&env, &s);
    const char *first = strstr(s.ca_pem, df_buf_str(&pem));
    assert_non_null(first);
    assert_null(strstr(first + 1, df_buf_str(&pem))); /* once, not once more by "..data" */
    assert_string_equal(s.redis.ca_pem, s.ca_pem);
    if (df_fs_exists("/etc/ssl/certs/ca-certificates.crt"))
        assert_true(first > s.ca_pem + 10000);
    write_file(mount, "ca.crt", "nothing");
    assert_refused(&env, "SettingInvalid", "ca.crt");
}

static void a_binding_root_that_is_not_there_is_fine(void **state)
{
    (void)state;
    DF_STRS struct df_strs env = CHART_WITH("SERVICE_BINDING_ROOT=/mnt/platform/bindings");
    SETTINGS s = {0};
    read_settings(&env, &s);
    assert_null(s.ca_pem);
}

static void secrets_and_what_leads_to_the_platform_are_not_for_users(void **state)
{
    (void)state;
    static const char *const own[] = {"InternalSecret",
                                      "INTERNALSECRET",
                                      "EphemeralJobData",
                                      "TerrakubeRedisPassword",
                                      "TerrakubeRedisTruststorePassword",
                                      "TerrakubeRedisSentinelPassword",
                                      "TerrakubeRedisHostname",
                                      "AwsTerraformStateSecretKey",
                                      "AwsTerraformOutputAccessKey",
                                      "AzureTerraformStateStorageAccessKey",
                                      "AzureTerraformOutputAccountKey",
                                      "GcpTerraformStateCredentials",
                                      "GcpTerraformOutputCredentials"};
    static const char *const for_all[] = {"HOME",
                                          "PATH",
                                          "TerrakubeApiUrl",
                                          "AzBuilderApiUrl",
                                          "AWS_ACCESS_KEY_ID",
                                          "ARM_CLIENT_ID",
                                          "TF_VAR_InternalSecret",
                                          "TerrakubeRegistryDomain",
                                          ""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(own); i++)
        if (!df_terrakube_is_platform_variable(own[i]))
            fail_msg("%s", own[i]);
    for (size_t i = 0; i < DF_ARRAY_SIZE(for_all); i++)
        if (df_terrakube_is_platform_variable(for_all[i]))
            fail_msg("%s", for_all[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_charts_environment_is_read),
        cmocka_unit_test(who_has_no_config_map_is_told_how_to_get_it),
        cmocka_unit_test(a_missing_secret_is_told_with_the_way_to_give_it),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(each_storage_asks_for_what_is_its_own),
        cmocka_unit_test(googles_key_is_decoded),
        cmocka_unit_test(switches_are_read_as_spring_reads_them),
        cmocka_unit_test(sentinels_and_nodes_of_a_cluster_are_lists),
        cmocka_unit_test(more_nodes_than_the_limit_are_refused),
        cmocka_unit_test(redis_is_not_needed_where_the_log_goes_through_the_api),
        cmocka_unit_test(a_truststore_is_read_when_tls_is_on),
        scratch_test(authorities_of_service_bindings_are_added_to_the_systems),
        cmocka_unit_test(a_binding_root_that_is_not_there_is_fine),
        cmocka_unit_test(secrets_and_what_leads_to_the_platform_are_not_for_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
