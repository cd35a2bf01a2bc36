#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/config/config.h"
#include "spawner/model/ephemeral.h"
#include "spawner/model/task_kinds.h"
#include "spawner/terrakube/terrakube.h"
#include "tests/unit/json_words.h"

#define ORGANIZATION "527930fd-b7d4-417f-b046-a35f3b5b1b7c"
#define WORKSPACE "ea627267-8bcf-4c6c-b9b1-9c1d5422deb3"
#define STEP "46a547e6-8e25-4b0b-b680-4994649bd0c0"

static const char payload_text[] =
    "{'type':'terraformPlan','organizationId':'" ORGANIZATION "','workspaceId':'" WORKSPACE "',"
    "'jobId':'12','stepId':'" STEP "','terraformVersion':'1.12.6','source':'https://git.example/m',"
    "'branch':'main','folder':'/','vcsType':'PUBLIC','accessToken':'a-token-of-git',"
    "'environmentVariables':{'organizationName':'acme','workspaceName':'net',"
    "'AWS_SECRET_ACCESS_KEY':'a-key-of-aws','EPHEMERAL_CPU_LIMIT':'500m',"
    "'EPHEMERAL_CONFIG_LABELS':'terrakube.io/workspace=mine','TF_PLUGIN_CACHE_DIR':'cache'},"
    "'variables':{'password':'a-password'}}";

static void read_payload(struct df_terrakube_payload *ret)
{
    DF_JSON cJSON *doc = json(payload_text);
    DF_FREE char *text = df_json_print(doc);
    struct df_err err = {0};
    if (df_terrakube_payload_read(text, strlen(text), ret, &err) < 0)
        fail_msg("%s", err.message);
}

static cJSON *make_spec(void)
{
    DF_TERRAKUBE_PAYLOAD p = {0};
    cJSON *spec = NULL;
    read_payload(&p);
    assert_int_equal(df_terrakube_task_spec(&p, &spec, NULL), 0);
    return spec;
}

static void a_step_has_one_name_however_often_it_is_sent(void **state)
{
    (void)state;
    DF_TERRAKUBE_PAYLOAD p = {0};
    read_payload(&p);
    DF_FREE char *name = df_terrakube_task_name(&p);
    assert_string_equal(name, "tk-12-" STEP);
}

static void the_document_says_whose_step_it_is_and_has_no_secret(void **state)
{
    (void)state;
    DF_JSON cJSON *spec = make_spec();
    DF_FREE char *text = df_json_print(spec);
    assert_string_equal(df_json_str(spec, "targetResource"), "terrakube/" WORKSPACE);
    assert_string_equal(df_json_str(spec, "terrakube.type"), "terraformPlan");
    assert_string_equal(df_json_str(spec, "terrakube.workspaceName"), "net");
    assert_null(strstr(text, "a-token-of-git"));
    assert_null(strstr(text, "a-key-of-aws"));
    assert_null(strstr(text, "a-password"));
}

static void variables_that_place_the_pod_are_in_the_document(void **state)
{
    (void)state;
    DF_JSON cJSON *spec = make_spec(), *placement = NULL;
    assert_int_equal(cJSON_GetArraySize(df_json_at(spec, "environment")), 3);
    assert_int_equal(df_ephemeral_placement(df_json_at(spec, "environment"), &placement, NULL), 0);
    assert_string_equal(df_json_str(placement, "resources.limits.cpu"), "500m");
    assert_null(df_json_at(placement, "pluginCache")); /* "cache" is a path of tofu alone */
}

static void labels_of_organization_and_workspace_are_those_of_the_payload(void **state)
{
    (void)state;
    DF_JSON cJSON *spec = make_spec();
    const cJSON *labels = df_json_at(spec, "terrakube.labels");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(labels, "terrakube.io/workspace")),
                        WORKSPACE);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(labels, "terrakube.io/organization")),
        ORGANIZATION);
}

static void a_payload_with_a_fault_is_a_step_if_it_says_whose(void **state)
{
    (void)state;
    const struct df_terrakube_payload p = {.organization = ORGANIZATION, .job = "12", .step = STEP};
    DF_JSON cJSON *spec = NULL;
    assert_int_equal(df_terrakube_task_spec(&p, &spec, NULL), 0);
    assert_string_equal(df_json_str(spec, "targetResource"), "terrakube/12");
    assert_null(df_json_str(spec, "terrakube.workspace"));
}

static void a_kind_of_tasks_says_where_its_platform_speaks(void **state)
{
    (void)state;
    DF_JSON cJSON *task = json("{'spec':{'action':'terrakube','terrakube':{'job':'12'}}}");
    DF_JSON cJSON *other = json("{'spec':{'action':'plan','terrakube':{'job':'12'}}}");
    assert_string_equal(df_json_str(df_task_of_upstream(task), "job"), "12");
    assert_null(df_task_of_upstream(other));
}

/* ---- what no workspace may set ---- */

#define VARIABLE(text) "EPHEMERAL_JOB_ENV_VARS", text

/* why NULL: it may. */
static const struct {
    const char *key, *value, *why;
} keys_of_workspaces[] = {
    {VARIABLE("A=b;TF_LOG=debug;AWS_REGION=eu;PATHS=x;ENVIRONMENT=y;HOMES=z"), NULL},
    {VARIABLE("LD_PRELOAD=/cache/x.so"), "LD_PRELOAD is refused: it changes which code"},
    {VARIABLE("GCONV_PATH=/cache"), "GCONV_PATH is refused: it changes which code"},
    {VARIABLE("OPENSSL_CONF=/cache/c"), "OPENSSL_CONF is refused: it changes which code"},
    {VARIABLE("A=b;LOCALDOMAIN=evil.example"),
     "EPHEMERAL_JOB_ENV_VARS.env[1]: LOCALDOMAIN is refused: it changes which hosts"},
    {VARIABLE("RES_OPTIONS=ndots:0"), "RES_OPTIONS is refused: it changes which hosts"},
    {VARIABLE("HOSTALIASES=/cache/h"), "HOSTALIASES is refused: it changes which hosts"},
    {VARIABLE("RESOLV_HOST_CONF=/cache/h"), "RESOLV_HOST_CONF is refused: "},
    {VARIABLE("http_proxy=http://e"), "http_proxy is refused: it changes which hosts"},
    {VARIABLE("HTTPS_PROXY=http://e"), "HTTPS_PROXY is refused: it changes which hosts"},
    {VARIABLE("all_proxy=http://e"), "all_proxy is refused: "},
    {VARIABLE("NO_PROXY=x"), "NO_PROXY is refused: "},
    {VARIABLE("SSL_CERT_FILE=/cache/c"), "SSL_CERT_FILE is refused: it changes whom"},
    {VARIABLE("CURL_CA_BUNDLE=/cache/c"), "CURL_CA_BUNDLE is refused: it changes whom"},
    {VARIABLE("PATH=/cache/bin"), "PATH is refused: it changes which programs"},
    {VARIABLE("HOME=/cache"), "HOME is refused: "},
    {VARIABLE("TMPDIR=/cache"), "TMPDIR is refused: "},
    {VARIABLE("GIT_SSH_COMMAND=/cache/x"), "GIT_SSH_COMMAND is refused: "},
    {VARIABLE("SSH_AUTH_SOCK=/cache/x"), "SSH_AUTH_SOCK is refused: "},
    {VARIABLE("XDG_CONFIG_HOME=/cache"), "XDG_CONFIG_HOME is refused: "},
    {VARIABLE("BASH_ENV=/cache/x"), "BASH_ENV is refused: "},
    {VARIABLE("ENV=/cache/x"), "ENV is refused: "},
    {VARIABLE("NLSPATH=/cache"), "NLSPATH is refused: "},
    {VARIABLE("LOCPATH=/cache"), "LOCPATH is refused: "},
    {VARIABLE("MALLOC_PERTURB_=1"), "MALLOC_PERTURB_ is refused: "},
    {VARIABLE("GLIBC_TUNABLES=glibc.malloc.check=3"), "GLIBC_TUNABLES is refused: "},
    {VARIABLE("DAYFLY_KNOWN_HOSTS=/cache/k"), "DAYFLY_KNOWN_HOSTS is refused: "},
    {VARIABLE("AzBuilderApiUrl=http://e"), "it is a setting of Terrakube's executor"},
    {VARIABLE("TerrakubeRedisSSL=false"), "it is a setting of Terrakube's executor"},
    {VARIABLE("InternalSecret=x"), "it is a setting of Terrakube's executor"},
    {VARIABLE("EphemeralJobData=x"), "it is a setting of Terrakube's executor"},
    {"TF_PLUGIN_CACHE_DIR", "/cache", NULL},
    {"TF_PLUGIN_CACHE_DIR", "/user/bin", NULL},
    {"TF_PLUGIN_CACHE_DIR", "/usr/local/bin",
     "TF_PLUGIN_CACHE_DIR: \"/usr/local/bin\" is refused: programs and files of the runner"},
    {"TF_PLUGIN_CACHE_DIR", "//usr/bin", "is refused: programs and files"},
    {"TF_PLUGIN_CACHE_DIR", "/./usr/bin", "is refused: programs and files"},
    {"TF_PLUGIN_CACHE_DIR", "/lib64/x", "is refused: programs and files"},
    {"EPHEMERAL_CONFIG_MAP_MOUNT_PATH", "/etc/extra", NULL},
    {"EPHEMERAL_CONFIG_MAP_MOUNT_PATH", "/etc/ssl",
     "EPHEMERAL_CONFIG_MAP_MOUNT_PATH: \"/etc/ssl\" is refused"},
};

static void a_workspace_cannot_change_how_the_runner_works(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys_of_workspaces); i++) {
        const char *key = keys_of_workspaces[i].key, *why = keys_of_workspaces[i].why;
        struct df_err err = {0};
        DF_JSON cJSON *task = json("{'spec':{'environment':[{'name':'EPHEMERAL_CONFIG_MAP_NAME',"
                                   "'value':'files'}]}}"),
                      *entry = cJSON_CreateObject(), *placement = NULL;
        assert_int_equal(df_json_add_str(entry, "name", key, NULL), 0);
        assert_int_equal(df_json_add_str(entry, "value", keys_of_workspaces[i].value, NULL), 0);
        cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(task, "spec"), "environment");
        assert_int_equal(df_json_append(list, DF_TAKE(entry), NULL), 0);
        int result = df_terrakube_placement(task, &placement, &err);
        if ((result == 0) != !why || (why && !strstr(err.message, why)))
            fail_msg("%s=%s: %s", key, keys_of_workspaces[i].value, result ? err.message : "may");
        if (why)
            assert_string_equal(err.reason, "InvalidPlacement");
    }
}

/* ---- the environment of Terrakube's API ---- */

static int load(const char *options, const char *deadline, struct df_config *ret,
                struct df_err *err)
{
    static char option[400], seconds[100];
    DF_STRS struct df_strs flags = {0};
    char *env[] = {(char[]){"HOME=/home/eve"}, option, seconds, NULL};
    (void)snprintf(option, sizeof(option), "JAVA_TOOL_OPTIONS=%s", options);
    (void)snprintf(seconds, sizeof(seconds), "ExecutorEphemeralActiveDeadlineSeconds=%s", deadline);
    (void)df_strs_add(&flags, "terrakube.listen=:8090");
    (void)df_strs_add(&flags, "kubernetes.placement={\"nodeSelector\":{\"pool\":\"batch\"}}");
    return df_config_load(NULL, env, &flags, ret, err);
}

static void node_selectors_come_from_java_tool_options_and_ours_win(void **state)
{
    (void)state;
    struct df_config c;
    assert_int_equal(load("-Xmx1g -Dio.terrakube.executor.ephemeral.nodeSelector.diskType=ssd "
                          "-Dorg.terrakube.executor.ephemeral.nodeSelector.pool=theirs "
                          "-Dio.terrakube.executor.ephemeral.nodeSelector[kubernetes.io/os]=linux",
                          "", &c, NULL),
                     0);
    DF_FREE char *text = df_json_print(df_json_at(c.kube_placement, "nodeSelector"));
    assert_string_equal(text,
                        "{\"pool\":\"batch\",\"diskType\":\"ssd\",\"kubernetes.io/os\":\"linux\"}");
    df_config_free(&c);
}

static void a_node_selector_without_a_key_is_refused_by_its_text(void **state)
{
    (void)state;
    struct df_config c;
    struct df_err err = {0};
    assert_int_equal(load("-Dio.terrakube.executor.ephemeral.nodeSelector=ssd", "", &c, &err), -1);
    assert_non_null(strstr(err.message, "JAVA_TOOL_OPTIONS"));
}

static void a_deadline_of_the_api_is_that_of_our_steps(void **state)
{
    (void)state;
    struct df_config c;
    struct df_err err = {0};
    assert_int_equal(load("", "", &c, NULL), 0);
    assert_int_equal(c.terrakube_deadline_s, 6 * 3600);
    assert_int_equal(c.terrakube_steps, 1); /* of the engine local */
    df_config_free(&c);
    assert_int_equal(load("", "90", &c, NULL), 0);
    assert_int_equal(c.terrakube_deadline_s, 90);
    df_config_free(&c);
    assert_int_equal(load("", "0", &c, &err), -1);
    assert_non_null(strstr(err.message, "ExecutorEphemeralActiveDeadlineSeconds: \"0\""));
}

static void a_heartbeat_is_due_once_in_fifteen_seconds_for_each_job(void **state)
{
    (void)state;
    struct df_terrakube_beats beats = {0};
    const int64_t second = 1000000, begin = INT64_C(1795529550) * second;
    int64_t next = 0;
    assert_true(df_terrakube_beat_is_due(&beats, "12", begin, &next));
    assert_int_equal(next, begin + 15 * second);
    assert_false(df_terrakube_beat_is_due(&beats, "12", begin + 14 * second, &next));
    assert_int_equal(next, begin + 15 * second);
    assert_true(df_terrakube_beat_is_due(&beats, "13", begin, &next));
    assert_true(df_terrakube_beat_is_due(&beats, "12", begin + 15 * second, &next));
    assert_int_equal(next, begin + 30 * second);
    /* A clock that was set back does not silence a job. */
    assert_true(df_terrakube_beat_is_due(&beats, "12", begin - 3600 * second, &next));
    /* Of jobs that share a place each is given more, and none is forgotten. */
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3000; i++) {
            char job[16];
            (void)snprintf(job, sizeof(job), "%d", i);
            (void)df_terrakube_beat_is_due(&beats, job, begin + round * 15 * second, &next);
            assert_int_equal(next, begin + (round + 1) * 15 * second);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_one_name_however_often_it_is_sent),
        cmocka_unit_test(the_document_says_whose_step_it_is_and_has_no_secret),
        cmocka_unit_test(variables_that_place_the_pod_are_in_the_document),
        cmocka_unit_test(a_workspace_cannot_change_how_the_runner_works),
        cmocka_unit_test(labels_of_organization_and_workspace_are_those_of_the_payload),
        cmocka_unit_test(a_payload_with_a_fault_is_a_step_if_it_says_whose),
        cmocka_unit_test(a_kind_of_tasks_says_where_its_platform_speaks),
        cmocka_unit_test(node_selectors_come_from_java_tool_options_and_ours_win),
        cmocka_unit_test(a_node_selector_without_a_key_is_refused_by_its_text),
        cmocka_unit_test(a_deadline_of_the_api_is_that_of_our_steps),
        cmocka_unit_test(a_heartbeat_is_due_once_in_fifteen_seconds_for_each_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
