/* A Secret and a job in the words of AWX, and what its words mean here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/ansible/awx_credentials.h"
#include "spawner/engine/ansible/awx_job.h"
#include "tests/unit/json_words.h"

static void assert_fails(int result, const struct df_err *err, enum df_err_class cls,
                         const char *text)
{
    assert_int_equal(result, -1);
    if (err->cls != cls || !strstr(err->message, text))
        fail_msg("%s: %s, not %s: %s", df_err_class_name(err->cls), err->message,
                 df_err_class_name(cls), text);
}

/* ---- Secrets ---- */

static void read_secret(const char *text, struct df_awx_secret *ret)
{
    DF_JSON cJSON *secret = json(text);
    struct df_err err = {0};
    if (df_awx_secret_of(secret, ret, &err) < 0)
        fail_msg("%s: %s", text, err.message);
}

#define GITEA                                                                                      \
    "{'metadata':{'name':'gitea-repo-creds'},"                                                     \
    "'data':{'username':'YWRtaW4=','password':'c2VjcmV0MTIz'}}"

/* UT-WE-015-030, the part before AWX is asked */
static void a_secret_becomes_a_type_with_a_field_for_each_key(void **state)
{
    (void)state;
    DF_AWX_SECRET s = {0};
    read_secret(GITEA, &s);
    assert_string_equal(s.type, "kubernaut-secret-gitea-repo-creds");
    assert_json(s.inputs,
                "{'fields':[{'id':'password','label':'password','type':'string','secret':true},"
                "{'id':'username','label':'username','type':'string','secret':true}]}",
                "inputs");
    assert_json(s.injectors,
                "{'env':{'KUBERNAUT_SECRET_GITEA_REPO_CREDS_USERNAME':'{{username}}',"
                "'KUBERNAUT_SECRET_GITEA_REPO_CREDS_PASSWORD':'{{password}}'}}",
                "injectors");
    assert_json(s.values, "{'username':'admin','password':'secret123'}", "values");
    DF_FREE char *name = df_awx_credential_name("gitea-repo-creds", "we-rr-test-deps");
    assert_string_equal(name, "kubernaut-ephemeral-gitea-repo-creds-we-rr-test-deps");
}

static void keys_that_are_no_ids_of_awx_get_one(void **state)
{
    (void)state;
    DF_AWX_SECRET s = {0};
    read_secret("{'metadata':{'name':'my.tls-2'},'data':{'tls.crt':'YQ==','ssh-privatekey':'Yg==',"
                "'.dockerconfigjson':'Yw==','1st':'ZA==','tower':null}}",
                &s);
    assert_json(s.values,
                "{'tls_crt':'a','ssh_privatekey':'b','_dockerconfigjson':'c','_1st':'d',"
                "'tower_':''}",
                "values");
    assert_json(s.injectors,
                "{'env':{'KUBERNAUT_SECRET_MY_TLS_2_TLS_CRT':'{{tls_crt}}',"
                "'KUBERNAUT_SECRET_MY_TLS_2_SSH_PRIVATEKEY':'{{ssh_privatekey}}',"
                "'KUBERNAUT_SECRET_MY_TLS_2__DOCKERCONFIGJSON':'{{_dockerconfigjson}}',"
                "'KUBERNAUT_SECRET_MY_TLS_2_1ST':'{{_1st}}',"
                "'KUBERNAUT_SECRET_MY_TLS_2_TOWER':'{{tower_}}'}}",
                "injectors");
    assert_string_equal(df_json_str(cJSON_GetArrayItem(df_json_at(s.inputs, "fields"), 0), "label"),
                        ".dockerconfigjson");
}

static void a_secret_that_awx_cannot_have_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *data, *said;
    } rows[] = {
        {"{'tls.crt':'YQ==','tls-crt':'YQ=='}", "key \"tls.crt\" becomes tls_crt in AWX, and so"},
        {"{'A':'YQ==','a':'YQ=='}", "key \"a\" becomes KUBERNAUT_SECRET_S_A in AWX"},
        {"{'a b':'YQ=='}", "key \"a b\" cannot be the field \"a b\""},
        {"{'':'YQ=='}", "key \"\" cannot be the field \"\""},
        {"{'a':'/w=='}", "the value of key \"a\" is no text"},
        {"{'a':'YQBi'}", "the value of key \"a\" is no text"},
        {"{'a':'c2VjcmV0MTIz%'}", "the value of key \"a\" is no text"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *text = df_strf("{'metadata':{'name':'s'},'data':%s}", rows[i].data);
        DF_JSON cJSON *secret = json(text);
        DF_AWX_SECRET s = {0};
        struct df_err err = {0};
        assert_fails(df_awx_secret_of(secret, &s, &err), &err, DF_ERR_USER, rows[i].said);
        assert_non_null(strstr(err.message, "Secret s: "));
        assert_null(strstr(err.message, "c2Vj"));
    }
}

static void a_secret_has_a_limited_number_of_keys(void **state)
{
    (void)state;
    DF_JSON cJSON *secret = json("{'metadata':{'name':'s'}}");
    DF_AWX_SECRET s = {0}, none = {0};
    struct df_err err = {0};
    for (int i = 0; i < DF_LIMIT_SECRET_KEYS; i++) {
        DF_FREE char *key = df_strf("k%d", i);
        assert_int_equal(df_json_add_str(df_json_object_at(secret, "data"), key, "", NULL), 0);
    }
    assert_int_equal(df_awx_secret_of(secret, &s, &err), 0);
    assert_int_equal(df_json_add_str(df_json_object_at(secret, "data"), "more", "", NULL), 0);
    assert_fails(df_awx_secret_of(secret, &none, &err), &err, DF_ERR_LIMIT, "more than 256 keys");
}

#define FIELD(id) "{'id':'" id "','label':'x','type':'string','secret':true,'help_text':''}"
#define ENV                                                                                        \
    "{'env':{'KUBERNAUT_SECRET_GITEA_REPO_CREDS_USERNAME':'{{username}}',"                         \
    "'KUBERNAUT_SECRET_GITEA_REPO_CREDS_PASSWORD':'{{password}}'}}"

static void a_type_that_was_changed_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *inputs, *injectors;
        bool fits;
    } rows[] = {
        {"{'fields':[" FIELD("username") "," FIELD("password") "],'required':['username']}", ENV,
         true},
        {"{'fields':[" FIELD("username") ",{'id':'password','secret':true}]}", ENV, true},
        {"{'fields':[" FIELD("username") "]}", ENV, false},
        {"{'fields':[" FIELD("username") "," FIELD("token") "]}", ENV, false},
        {"{'fields':[" FIELD("username") "," FIELD("password") "," FIELD("token") "]}", ENV, false},
        {"{'fields':[" FIELD("username") ",{'id':'password','type':'string'}]}", ENV, false},
        {"{'fields':[" FIELD("username") ",{'id':'password','type':'boolean','secret':true}]}", ENV,
         false},
        {"{'fields':[" FIELD("username") "," FIELD("password") "]}", "{}", false},
        {"{'fields':[" FIELD("username") "," FIELD("password") "]}", "{'env':{'A':'{{username}}'}}",
         false},
        {"{}", ENV, false},
    };
    DF_AWX_SECRET s = {0};
    read_secret(GITEA, &s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *text =
            df_strf("{'id':15,'inputs':%s,'injectors':%s}", rows[i].inputs, rows[i].injectors);
        DF_JSON cJSON *type = json(text);
        if (df_awx_type_fits(type, &s) != rows[i].fits)
            fail_msg("%s", text);
    }
}

static void the_other_name_of_a_type_follows_from_the_keys_alone(void **state)
{
    (void)state;
    DF_AWX_SECRET one = {0}, same = {0}, other = {0};
    read_secret(GITEA, &one);
    read_secret("{'metadata':{'name':'gitea-repo-creds'},'data':{'password':'','username':''}}",
                &same);
    read_secret("{'metadata':{'name':'gitea-repo-creds'},'data':{'password':''}}", &other);
    assert_int_equal(df_awx_secret_rename(&one, NULL), 0);
    assert_int_equal(df_awx_secret_rename(&same, NULL), 0);
    assert_int_equal(df_awx_secret_rename(&other, NULL), 0);
    assert_true(df_starts_with(one.type, "kubernaut-secret-gitea-repo-creds-"));
    assert_int_equal(strlen(one.type), strlen("kubernaut-secret-gitea-repo-creds-") + 8);
    assert_string_equal(one.type, same.type);
    assert_string_not_equal(one.type, other.type);
}

/* ---- ids ---- */

/* UT-WE-365-001, -002, -003 */
static void credentials_of_the_template_come_first_and_each_once(void **state)
{
    (void)state;
    static const char *const rows[][3] = {{"[100,200]", "[42]", "[100,200,42]"},
                                          {"[100,200]", "[200]", "[100,200]"},
                                          {"[]", "[42]", "[42]"},
                                          {"[7,7]", "[]", "[7]"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *of_template = json(rows[i][0]), *own = json(rows[i][1]), *merged = NULL;
        assert_int_equal(df_awx_merge_ids(of_template, own, &merged, NULL), 0);
        DF_FREE char *text = df_json_print(merged);
        assert_string_equal(text, rows[i][2]);
    }
}

/* UT-WE-015-030: the annotation */
static void ids_are_written_as_one_text(void **state)
{
    (void)state;
    DF_JSON cJSON *both = json("[42,55]"), *none = json("[]");
    DF_FREE char *written = df_awx_print_ids(both), *empty = df_awx_print_ids(none);
    assert_string_equal(written, "42,55");
    assert_string_equal(empty, "");
    assert_string_equal(DF_AWX_ANNOTATION, "kubernaut.ai/awx-ephemeral-credentials");
}

/* ---- engineConfig ---- */

/* UT-WE-016-001, -001b */
static void engine_config_names_playbook_template_and_inventory(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        {"{'playbookPath':'playbooks/restart_pod.yml','jobTemplateName':'restart-pod-template',"
         "'inventoryName':'production'}",
         "playbooks/restart_pod.yml", "restart-pod-template", "production"},
        {"{'playbookPath':'playbooks/scale.yml'}", "playbooks/scale.yml", "", ""},
        {"{'PLAYBOOKPATH':'a','jobtemplatename':'b','InventoryName':null}", "a", "b", ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *config = json(rows[i][0]);
        struct df_awx_config c = {0};
        assert_int_equal(df_awx_config_of(config, &c, NULL), 0);
        assert_string_equal(c.playbook, rows[i][1]);
        assert_string_equal(c.job_template, rows[i][2]);
        assert_string_equal(c.inventory, rows[i][3]);
    }
}

/* UT-WE-015-004, UT-WE-016-004, -004b, -004c */
static void engine_config_is_refused_in_the_words_of_the_contract(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"null", "engineConfig is required for ansible engine"},
        {"{}", "playbookPath is required in ansible engineConfig"},
        {"{'playbookPath':''}", "playbookPath is required in ansible engineConfig"},
        {"'text'", "invalid ansible engineConfig: it must be an object"},
        {"{'playbookPath':5}", "invalid ansible engineConfig: playbookPath must be a string"},
        {"{'playbookPath':'a','playbook':'b'}",
         "invalid ansible engineConfig: \"playbook\" is unknown: it may have playbookPath, "
         "jobTemplateName and inventoryName"},
    };
    struct df_awx_config c;
    struct df_err err = {0};
    assert_fails(df_awx_config_of(NULL, &c, &err), &err, DF_ERR_USER, rows[0][1]);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *config = json(rows[i][0]);
        DF_FREE char *text = df_strf("parse ansible engineConfig: %s", rows[i][1]);
        assert_fails(df_awx_config_of(config, &c, &err), &err, DF_ERR_USER, text);
        assert_string_equal(err.message, text);
    }
}

/* ---- jobs ---- */

static void a_job_is_named_by_its_id(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"wfe-42",
         "parse AWX job ID from executionRef \"wfe-42\": execution ref \"wfe-42\" does not have "
         "awx-job- prefix"},
        {"awx-job-", "parse AWX job ID from executionRef \"awx-job-\": "},
        {"awx-job-4x", "parse AWX job ID from executionRef \"awx-job-4x\": "},
        {"awx-job--4", "parse AWX job ID from executionRef \"awx-job--4\": "},
    };
    char ref[32];
    int64_t id = 0;
    df_awx_job_ref(42, ref);
    assert_string_equal(ref, "awx-job-42");
    assert_int_equal(df_awx_job_id(ref, &id, NULL), 0);
    assert_int_equal(id, 42);
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        struct df_err err = {0};
        assert_fails(df_awx_job_id(bad[i][0], &id, &err), &err, DF_ERR_USER, bad[i][1]);
    }
}

/* UT-WE-015-002, (unknown) */
static void each_status_of_awx_means_something_here(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        enum df_workflow_phase phase;
        const char *reason, *message, *summary;
    } rows[] = {
        {"pending", DF_WORKFLOW_RUNNING, "AWXJobPending", "AWX job is queued", "Unknown"},
        {"waiting", DF_WORKFLOW_RUNNING, "AWXJobPending", "AWX job is queued", "Unknown"},
        {"running", DF_WORKFLOW_RUNNING, "AWXJobRunning", "AWX job is executing", "Unknown"},
        {"successful", DF_WORKFLOW_COMPLETED, "AWXJobSuccessful", "AWX job completed successfully",
         "True"},
        {"failed", DF_WORKFLOW_FAILED, "AWXJobFailed", "AWX job execution failed", "False"},
        {"error", DF_WORKFLOW_FAILED, "AWXJobError", "AWX job encountered an internal error",
         "False"},
        {"canceled", DF_WORKFLOW_FAILED, "AWXJobCanceled", "AWX job was canceled", "False"},
        {"new", DF_WORKFLOW_RUNNING, "AWXJobUnknown", "Unknown AWX job status: new", "Unknown"},
        {"unknown-state", DF_WORKFLOW_RUNNING, "AWXJobUnknown",
         "Unknown AWX job status: unknown-state", "Unknown"},
        {NULL, DF_WORKFLOW_FAILED, "AWXJobGone",
         "AWX job is gone: it was deleted in AWX before it had ended", "False"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_workflow_status s;
        df_awx_job_status(rows[i].status, NULL, &s);
        assert_int_equal(s.phase, rows[i].phase);
        assert_string_equal(s.reason, rows[i].reason);
        assert_string_equal(s.message, rows[i].message);
        assert_string_equal(s.summary.status, rows[i].summary);
        assert_string_equal(s.summary.message, rows[i].message);
        assert_int_equal(s.summary.total_tasks, 0);
        assert_false(s.out_of_pods);
    }
}

/* UT-WE-015-002b */
static void a_job_that_failed_says_how_its_output_ended(void **state)
{
    (void)state;
    struct df_workflow_status s;
    df_awx_job_status("failed", "TASK [restart] fatal: connection refused", &s);
    assert_string_equal(s.message, "TASK [restart] fatal: connection refused");
    assert_string_equal(s.summary.message, s.message);
    assert_string_equal(s.summary.status, "False");
    df_awx_job_status("failed", "", &s);
    assert_string_equal(s.message, "AWX job execution failed");
    df_awx_job_status("successful", "ok", &s);
    assert_string_equal(s.message, "AWX job completed successfully");
}

static void a_long_output_is_cut_in_front_and_between_characters(void **state)
{
    (void)state;
    struct df_workflow_status s;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < 600; i++)
        (void)df_buf_adds(&text, "é");
    (void)df_buf_adds(&text, "fatal:");
    df_awx_job_status("failed", df_buf_str(&text), &s);
    assert_int_equal(strlen(s.message), DF_AWX_SHOWN - 2);
    assert_true(df_starts_with(s.message, "é"));
    assert_true(df_ends_with(s.message, "éfatal:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_becomes_a_type_with_a_field_for_each_key),
        cmocka_unit_test(keys_that_are_no_ids_of_awx_get_one),
        cmocka_unit_test(a_secret_that_awx_cannot_have_is_refused),
        cmocka_unit_test(a_secret_has_a_limited_number_of_keys),
        cmocka_unit_test(a_type_that_was_changed_does_not_fit),
        cmocka_unit_test(the_other_name_of_a_type_follows_from_the_keys_alone),
        cmocka_unit_test(credentials_of_the_template_come_first_and_each_once),
        cmocka_unit_test(ids_are_written_as_one_text),
        cmocka_unit_test(engine_config_names_playbook_template_and_inventory),
        cmocka_unit_test(engine_config_is_refused_in_the_words_of_the_contract),
        cmocka_unit_test(a_job_is_named_by_its_id),
        cmocka_unit_test(each_status_of_awx_means_something_here),
        cmocka_unit_test(a_job_that_failed_says_how_its_output_ended),
        cmocka_unit_test(a_long_output_is_cut_in_front_and_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
