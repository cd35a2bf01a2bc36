#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/terrakube/token.h"
#include "runner/terrakube/state.h"
#include "runner/tofu/override.h"
#include "tests/unit/terrakube_words.h"

#define ORG "11111111-1111-1111-1111-111111111111"
#define WS "22222222-2222-2222-2222-222222222222"

#define TEXT(s) ((char[]){s})

static cJSON *added(const struct df_terrakube_settings *s, const char *version)
{
    DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload p = terrakube_payload("{}");
    struct df_version v;
    struct df_err err = {0};
    assert_int_equal(df_version_parse(version, &v, NULL), 0);
    cJSON *step = cJSON_CreateObject();
    if (df_terrakube_state_add(s, &p, &v, step, &err) < 0)
        fail_msg("%s", err.message);
    return step;
}

static void state_is(const struct df_terrakube_settings *s, const char *version,
                     const char *expected)
{
    DF_JSON cJSON *step = added(s, version);
    DF_FREE char *text = df_json_print(df_json_at(step, "state"));
    assert_string_equal(text, expected);
}

static const struct df_terrakube_settings amazon = {.state = DF_TERRAKUBE_STATE_AWS,
                                                    .aws = {.access_key = TEXT("AK"),
                                                            .secret_key = TEXT("SK"),
                                                            .bucket = TEXT("b"),
                                                            .region = TEXT("eu-west-1"),
                                                            .include_keys = true}};

#define S3_BEGIN                                                                                   \
    "{\"config\":{\"bucket\":\"b\",\"region\":\"eu-west-1\",\"key\":\"tfstate/" ORG "/" WS         \
    "/terraform.tfstate\""
#define S3_KEYS ",\"access_key\":\"AK\",\"secret_key\":\"SK\""
#define S3_SKIPS                                                                                   \
    ",\"skip_credentials_validation\":true,\"skip_metadata_api_check\":true,"                      \
    "\"skip_region_validation\":true"
#define S3_END "},\"type\":\"s3\",\"overrideBackend\":true}"

static void a_bucket_of_amazon_has_the_key_of_the_workspace(void **state)
{
    (void)state;
    state_is(&amazon, "1.9.0", S3_BEGIN S3_KEYS S3_END);
    struct df_terrakube_settings by_role = amazon;
    by_role.aws.include_keys = false;
    state_is(&by_role, "1.9.0", S3_BEGIN S3_END);
}

static void the_settings_of_another_s3_are_those_of_the_tools_version(void **state)
{
    (void)state;
    struct df_terrakube_settings s = amazon;
    char endpoint[] = "http://minio:9000";
    s.aws.endpoint = endpoint;
    state_is(&s, "1.5.7",
             S3_BEGIN S3_KEYS ",\"endpoint\":\"http://minio:9000\"" S3_SKIPS
                              ",\"force_path_style\":true" S3_END);
    state_is(&s, "1.6.0",
             S3_BEGIN S3_KEYS ",\"endpoints\":{\"s3\":\"http://minio:9000\"}" S3_SKIPS
                              ",\"skip_requesting_account_id\":true,\"skip_s3_checksum\":true,"
                              "\"use_path_style\":true" S3_END);
}

static void the_lock_file_is_used_from_the_version_that_has_it(void **state)
{
    (void)state;
    struct df_terrakube_settings s = amazon;
    s.aws.use_lockfile = true;
    state_is(&s, "1.9.9", S3_BEGIN S3_KEYS S3_END);
    state_is(&s, "1.10.0", S3_BEGIN S3_KEYS ",\"use_lockfile\":true" S3_END);
}

static void a_container_of_azure_has_the_key_of_the_workspace(void **state)
{
    (void)state;
    const struct df_terrakube_settings s = {.state = DF_TERRAKUBE_STATE_AZURE,
                                            .azure = {.resource_group = TEXT("rg"),
                                                      .account = TEXT("acc"),
                                                      .container = TEXT("tfstate"),
                                                      .access_key = TEXT("key==")}};
    state_is(&s, "1.9.0",
             "{\"config\":{\"resource_group_name\":\"rg\",\"storage_account_name\":\"acc\","
             "\"container_name\":\"tfstate\",\"key\":\"" ORG "/" WS "/terraform.tfstate\","
             "\"access_key\":\"key==\"},\"type\":\"azurerm\",\"overrideBackend\":true}");
}

static void credentials_of_google_are_a_file_beside_the_module(void **state)
{
    const struct df_terrakube_settings s = {
        .state = DF_TERRAKUBE_STATE_GCP,
        .gcp = {.bucket = TEXT("b"), .credentials = TEXT("{\"type\":\"service_account\"}")}};
    state_is(&s, "1.9.0",
             "{\"config\":{\"bucket\":\"b\",\"prefix\":\"tfstate/" ORG "/" WS
             "/terraform.tfstate\",\"credentials\":\"GCP_CREDENTIALS_FILE.json\"},"
             "\"type\":\"gcs\",\"overrideBackend\":true}");
    const char *dir = *state;
    DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload p = terrakube_payload("{}");
    assert_int_equal(df_terrakube_state_write(&s, &p, dir, NULL), 0);
    DF_FREE char *path = df_fs_join(dir, "GCP_CREDENTIALS_FILE.json");
    DF_BUF struct df_buf b = DF_BUF_INIT(1000);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), s.gcp.credentials);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void the_local_state_is_below_home_where_the_api_reads_it(void **state)
{
    char *dir = *state;
    const struct df_terrakube_settings s = {.state = DF_TERRAKUBE_STATE_LOCAL, .home = dir};
    DF_JSON cJSON *step = added(&s, "1.9.0");
    DF_FREE char *expected =
        df_strf("%s/.terraform-spring-boot/local/backend/" ORG "/" WS "/terraform.tfstate", dir);
    assert_string_equal(df_json_str(step, "state.config.path"), expected);
    DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload p = terrakube_payload("{}");
    assert_int_equal(df_terrakube_state_write(&s, &p, "/nonexistent", NULL), 0);
    *strrchr(expected, '/') = '\0';
    assert_true(df_fs_exists(expected));
}

/* A plan is applied with the backend that it carries: the token must not be a part of it. */
static void the_token_of_the_api_is_in_the_environment_and_not_in_the_backend(void **state)
{
    (void)state;
    char url[] = "https://terrakube.example/", secret[] = TERRAKUBE_SECRET;
    const struct df_terrakube_settings s = {
        .state = DF_TERRAKUBE_STATE_API, .public_url = url, .internal_secret = secret};
    DF_JSON cJSON *step = added(&s, "1.9.0");
    DF_FREE char *text = df_json_print(df_json_at(step, "state"));
#define BASE "https://terrakube.example/tfstate/v1/http-backend/organization/" ORG "/workspace/" WS
    assert_string_equal(text, "{\"config\":{\"address\":\"" BASE "/state\",\"lock_address\":\"" BASE
                              "/lock\",\"unlock_address\":\"" BASE "/lock\",\"lock_method\":"
                              "\"POST\",\"unlock_method\":\"DELETE\",\"username\":\"internal\"},"
                              "\"type\":\"http\",\"overrideBackend\":true}");
    const char *token = df_json_str(step, "secretEnvironment.TF_HTTP_PASSWORD");
    assert_non_null(token);
    assert_int_equal(strlen(token) > 100, 1);
}

static void what_the_type_needs_is_named_when_it_is_missing(void **state)
{
    (void)state;
    static const struct {
        enum df_terrakube_state type;
        const char *name;
    } cases[] = {{DF_TERRAKUBE_STATE_AWS, "AwsTerraformStateBucketName"},
                 {DF_TERRAKUBE_STATE_AZURE, "AzureTerraformStateStorageAccountName"},
                 {DF_TERRAKUBE_STATE_GCP, "GcpTerraformStateBucketName"},
                 {DF_TERRAKUBE_STATE_LOCAL, "HOME"},
                 {DF_TERRAKUBE_STATE_API, "TerrakubeApiUrl"}};
    DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload p = terrakube_payload("{}");
    const struct df_version v = {.number = {1, 9, 0}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const struct df_terrakube_settings s = {.state = cases[i].type};
        DF_JSON cJSON *step = cJSON_CreateObject();
        struct df_err err = {0};
        assert_int_equal(df_terrakube_state_add(&s, &p, &v, step, &err), -1);
        assert_string_equal(err.reason, "SettingMissing");
        assert_non_null(strstr(err.message, cases[i].name));
        assert_null(df_json_at(step, "state"));
    }
}

/* "." a beat that found the lock, "!" one that did not, a digit: the command (0: none). */
static bool lost(const char *beats)
{
    struct df_terrakube_beats b = {0};
    unsigned command = 0;
    bool is_lost = false;
    for (const char *p = beats; *p; p++) {
        if (*p >= '0' && *p <= '9')
            command = (unsigned)(*p - '0');
        else
            is_lost = df_terrakube_beats_lost(&b, command, *p == '!');
    }
    return is_lost;
}

static void a_lock_is_lost_only_if_its_command_had_it_and_misses_it_twice(void **state)
{
    (void)state;
    static const char *const lost_ones[] = {"1.!!", "1!.!!", "1..!!", "1.!!!", "0!1!3.!!"};
    static const char *const others[] = {"",      "1!!!!", "1.!",   "1.!.!",
                                         "1.0!!", "1.3!!", "0!!!!", "1.!3!!"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(lost_ones); i++) {
        if (!lost(lost_ones[i]))
            fail_msg("%s is not lost", lost_ones[i]);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        if (lost(others[i]))
            fail_msg("%s is lost", others[i]);
    }
}

static int setup(void **state)
{
    char *dir = strdup("/tmp/dayfly-state-XXXXXX");
    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int failed = df_fs_remove_tree(*state, NULL);
    free(*state);
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_of_amazon_has_the_key_of_the_workspace),
        cmocka_unit_test(the_settings_of_another_s3_are_those_of_the_tools_version),
        cmocka_unit_test(the_lock_file_is_used_from_the_version_that_has_it),
        cmocka_unit_test(a_container_of_azure_has_the_key_of_the_workspace),
        cmocka_unit_test_setup_teardown(credentials_of_google_are_a_file_beside_the_module, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_local_state_is_below_home_where_the_api_reads_it, setup,
                                        teardown),
        cmocka_unit_test(the_token_of_the_api_is_in_the_environment_and_not_in_the_backend),
        cmocka_unit_test(a_lock_is_lost_only_if_its_command_had_it_and_misses_it_twice),
        cmocka_unit_test(what_the_type_needs_is_named_when_it_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
