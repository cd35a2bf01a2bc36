/* The recorded jobs of 2.28.0, what other versions write, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "common/terrakube/payload.h"
#include "tests/unit/json_words.h"

#define RECORDED "tests/fuzz/corpus/terrakube_payload/"
#define LEAST                                                                                      \
    "{'type': 'terraformPlan', 'organizationId': '527930fd-b7d4-417f-b046-a35f3b5b1b7c', "         \
    "'workspaceId': 'ea627267-8bcf-4c6c-b9b1-9c1d5422deb3', 'jobId': '12', "                       \
    "'stepId': '46a547e6-8e25-4b0b-b680-4994649bd0c0'}"

/* LEAST with these members besides, or instead; ' for ". */
static int read_with(const char *members, struct df_terrakube_payload *ret, struct df_err *err)
{
    DF_JSON cJSON *job = json(LEAST), *more = json(members);
    for (cJSON *j = more->child; j; j = j->next)
        assert_int_equal(df_json_set(job, j->string, cJSON_Duplicate(j, true), err), 0);
    DF_FREE char *text = df_json_print(job);
    return df_terrakube_payload_read(text, strlen(text), ret, err);
}

static void must_read(const char *members, struct df_terrakube_payload *ret)
{
    struct df_err err = {0};
    if (read_with(members, ret, &err) < 0)
        fail_msg("%s: %s", members, err.message);
}

static void must_refuse(const char *members, const char *reason, const char *word)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p;
    assert_int_equal(read_with(members, &p, &err), -1);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, word))
        fail_msg("%s: \"%s\" does not name %s", members, err.message, word);
}

static void load(const char *name, struct df_terrakube_payload *ret)
{
    struct df_err err = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_fs_join(RECORDED, name);
    assert_int_equal(df_fs_read(path, &text, &err), 0);
    if (df_terrakube_payload_read(df_buf_str(&text), text.len, ret, &err) < 0)
        fail_msg("%s: %s", name, err.message);
}

static void the_recorded_jobs_have_their_types(void **state)
{
    static const struct {
        const char *name;
        enum df_terrakube_type type;
        const char *job;
        bool is_tofu;
    } cases[] = {
        {"plan", DF_TERRAKUBE_PLAN, "1", true},
        {"plan-destroy", DF_TERRAKUBE_PLAN_DESTROY, "29", true},
        {"apply", DF_TERRAKUBE_APPLY, "1", true},
        {"destroy", DF_TERRAKUBE_DESTROY, "2", true},
        {"scripts-plan", DF_TERRAKUBE_PLAN, "18", true},
        {"scripts-apply", DF_TERRAKUBE_APPLY, "18", true},
        {"longline", DF_TERRAKUBE_PLAN, "38", true},
        {"tf-plan", DF_TERRAKUBE_PLAN, "25", false},
        {"later", DF_TERRAKUBE_PLAN, "1", true},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_TERRAKUBE_PAYLOAD p;
        load(cases[i].name, &p);
        assert_int_equal(p.type, cases[i].type);
        assert_string_equal(p.job, cases[i].job);
        assert_int_equal(p.is_tofu, cases[i].is_tofu);
        assert_true(p.refresh && p.show_header && !p.refresh_only && !p.ignore_error);
    }
}

static void a_recorded_apply_is_read_as_it_stands(void **state)
{
    DF_TERRAKUBE_PAYLOAD p;
    (void)state;
    load("apply", &p);
    assert_string_equal(p.organization, "527930fd-b7d4-417f-b046-a35f3b5b1b7c");
    assert_string_equal(p.workspace, "ea627267-8bcf-4c6c-b9b1-9c1d5422deb3");
    assert_string_equal(p.step, "2fffe953-0e53-46a1-b8ef-c2c3fed7935b");
    assert_string_equal(p.version, "1.12.6");
    assert_string_equal(p.source, "http://10.89.0.1:8099/git/module.git");
    assert_string_equal(p.branch, "main");
    assert_string_equal(p.folder, "/");
    assert_string_equal(p.commit, "13aaf574433c256ca5833728b120c5393f7039c4");
    assert_string_equal(p.vcs_type, "PUBLIC");
    assert_null(p.connection_type);
    assert_null(p.access_token);
    assert_null(p.commands);
    assert_null(p.policies);
    assert_string_equal(df_json_str(p.environment, "API_KEY"), "test-only-api-key");
    assert_json(p.variables, "{'owner': 'oracle', 'shout': 'test-only-shout'}", "variables");
}

static void policies_and_the_list_of_variables_of_later_versions_are_given_on(void **state)
{
    DF_TERRAKUBE_PAYLOAD p;
    (void)state;
    load("later", &p);
    assert_int_equal(cJSON_GetArraySize(p.policies), 1);
    assert_null(p.exemptions);
    assert_json(p.variables,
                "[{'key': 'owner', 'value': 'oracle', 'hcl': false}, "
                "{'key': 'zones', 'value': '[\\\"a\\\"]', 'hcl': true}]",
                "variables");
}

static void what_old_versions_lack_has_the_defaults_of_the_api(void **state)
{
    DF_TERRAKUBE_PAYLOAD p;
    (void)state;
    load("least", &p);
    assert_string_equal(p.job, "7");
    assert_true(p.refresh && p.show_header);
    assert_false(p.refresh_only || p.ignore_error || p.is_tofu);
    assert_null(p.version);
    assert_json(p.environment, "{}", "environment");
    assert_json(p.variables, "{}", "variables");
}

static void unknown_members_that_restrict_nothing_are_ignored(void **state)
{
    static const char *const members[] = {
        "{'agentUrl': 'http://x', 'terraformOutput': null, 'jobDiagnostics': {}}",
        "{'priority': 3, 'newThing': [1, {'a': null}]}",
        "{'costPolicy': null, 'policyGroups': [], 'enforcementLevel': '', 'policyX': false}",
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        DF_TERRAKUBE_PAYLOAD p;
        must_read(members[i], &p);
    }
}

static void unknown_members_that_may_restrict_are_refused(void **state)
{
    (void)state;
    must_refuse("{'sentinelPolicies': ['x']}", "PayloadUnsupported", "\"sentinelPolicies\"");
    must_refuse("{'policySets': [{}]}", "PayloadUnsupported", "\"policySets\"");
    must_refuse("{'costEnforcementLevel': 'HARD'}", "PayloadUnsupported", "costEnforcementLevel");
    must_refuse("{'PolicyX': true}", "PayloadUnsupported", "\"PolicyX\"");
}

static void terragrunt_is_refused(void **state)
{
    DF_TERRAKUBE_PAYLOAD p, q;
    (void)state;
    must_refuse("{'iacType': 'terragrunt'}", "PayloadUnsupported", "terragrunt");
    must_refuse("{'terragruntVersion': '0.50.0'}", "PayloadUnsupported", "terragrunt");
    must_refuse("{'iacType': 'pulumi'}", "PayloadUnsupported", "\"pulumi\"");
    must_read("{'iacType': 'OpenTofu', 'terragruntVersion': '0.50.0'}", &p);
    assert_true(p.is_tofu);
    must_read("{'iacType': 'terraform', 'terragruntVersion': null}", &q);
    assert_false(q.is_tofu);
}

static void members_of_a_wrong_kind_are_refused_by_name(void **state)
{
    static const struct {
        const char *members, *word;
    } cases[] = {
        {"{'type': 'terraformImport'}", "Command type not defined"},
        {"{'type': null}", "Command type not defined"},
        {"{'organizationId': '../../etc'}", "\"organizationId\""},
        {"{'workspaceId': '527930fd-b7d4-417f-b046-a35f3b5b1b7/'}", "\"workspaceId\""},
        {"{'stepId': null}", "\"stepId\""},
        {"{'jobId': '12/../1'}", "\"jobId\""},
        {"{'jobId': '1234567890123456789'}", "\"jobId\""},
        {"{'jobId': '01'}", "without zeros before it"},
        {"{'jobId': '0012'}", "\"jobId\""},
        {"{'jobId': '00'}", "\"jobId\""},
        {"{'jobId': -1}", "\"jobId\""},
        {"{'jobId': 1.5}", "\"jobId\""},
        {"{'source': 7}", "\"source\""},
        {"{'refresh': 'false'}", "\"refresh\""},
        {"{'tofu': 'yes'}", "\"tofu\""},
        {"{'environmentVariables': []}", "\"environmentVariables\""},
        {"{'environmentVariables': {'A=B': 'x'}}", "\"environmentVariables\""},
        {"{'environmentVariables': {'': 'x'}}", "\"environmentVariables\""},
        {"{'environmentVariables': {'A': {'b': 1}}}", "\"A\""},
        {"{'variables': 'x'}", "\"variables\""},
        {"{'variables': ['x']}", "\"variables\""},
        {"{'variables': [{'value': 'x'}]}", "\"variables\""},
        {"{'variables': [{'key': 'a', 'value': 3}]}", "\"value\""},
        {"{'policyList': {'policyName': 'x'}}", "\"policyList\""},
        {"{'policyExemptionList': true}", "\"policyExemptionList\""},
        {"{'commandList': {}}", "\"commandList\""},
        {"{'commandList': [{'runtime': 'PYTHON', 'script': 'x'}]}", "\"runtime\""},
        {"{'onFailureList': ['x']}", "onFailureList: command 1"},
        {"{'commandList': [{'runtime': 'BASH', 'priority': 1.5}]}", "\"priority\""},
        {"{'commandList': [{'runtime': 'BASH', 'priority': 3000000000}]}", "\"priority\""},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        must_refuse(cases[i].members, "PayloadInvalid", cases[i].word);
}

static void a_refusal_shows_no_value_of_a_variable(void **state)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p;
    (void)state;
    assert_int_equal(read_with("{'variables': [{'key': 'a', 'value': ['hunter2']}]}", &p, &err),
                     -1);
    assert_null(strstr(err.message, "hunter2"));
}

static void a_refusal_can_be_told_to_its_step(void **state)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p, q;
    (void)state;
    assert_int_equal(read_with("{'workspaceId': 1}", &p, &err), -1);
    assert_string_equal(p.organization, "527930fd-b7d4-417f-b046-a35f3b5b1b7c");
    assert_string_equal(p.job, "12");
    assert_string_equal(p.step, "46a547e6-8e25-4b0b-b680-4994649bd0c0");
    assert_int_equal(df_terrakube_payload_read("[]", 2, &q, &err), -1);
    assert_null(q.step);
}

static void the_folder_is_the_first_of_the_list(void **state)
{
    DF_TERRAKUBE_PAYLOAD p, q;
    (void)state;
    must_read("{'folder': '/stack,/modules,/x'}", &p);
    assert_string_equal(p.folder, "/stack");
    must_read("{'folder': ',/modules'}", &q);
    assert_null(q.folder);
}

static void null_says_that_there_is_no_such_variable(void **state)
{
    DF_TERRAKUBE_PAYLOAD p;
    (void)state;
    must_read("{'environmentVariables': {'A': null, 'B': 'b', 'C': null}, 'variables': {'d': ''}}",
              &p);
    assert_json(p.environment, "{'B': 'b'}", "environment");
    assert_json(p.variables, "{'d': ''}", "variables");
}

static void an_uploaded_configuration_has_no_banner_unless_it_is_asked_for(void **state)
{
    DF_TERRAKUBE_PAYLOAD p, q;
    (void)state;
    must_read("{'branch': 'remote-content'}", &p);
    assert_false(p.show_header);
    must_read("{'branch': 'remote-content', 'showHeader': true}", &q);
    assert_true(q.show_header);
}

static void commands_of_equal_priority_all_stay_in_their_order(void **state)
{
    static const char list[] =
        "[{'runtime': 'BASH', 'script': 'c', 'priority': 20, 'after': true},"
        " {'runtime': 'GROOVY', 'script': 'a', 'priority': 10, 'before': true, 'verbose': true},"
        " {'runtime': 'BASH', 'script': 'd', 'priority': 20},"
        " {'runtime': 'BASH', 'script': 'b', 'priority': 10, 'beforeInit': true},"
        " {'runtime': 'BASH', 'script': null}]";
    static const char *const order[] = {"", "a", "b", "c", "d"};
    struct df_err err = {0};
    DF_JSON cJSON *j = json(list);
    DF_FREE struct df_terrakube_command *c = NULL;
    size_t n = 0;
    (void)state;
    assert_int_equal(df_terrakube_commands(j, &c, &n, &err), 0);
    assert_int_equal(n, DF_ARRAY_SIZE(order));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(c[i].script, order[i]);
    assert_true(!c[1].is_bash && c[1].before && c[1].verbose && !c[1].before_init && !c[1].after);
    assert_true(c[2].is_bash && c[2].before_init && !c[2].before && c[3].after);
}

static void a_step_has_a_bounded_number_of_commands(void **state)
{
    struct df_err err = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    DF_FREE struct df_terrakube_command *c = NULL, *d = NULL;
    size_t n = 0;
    (void)state;
    while (cJSON_GetArraySize(list) < DF_LIMIT_TERRAKUBE_COMMANDS)
        assert_int_equal(df_json_append(list, json("{'runtime': 'BASH'}"), &err), 0);
    assert_int_equal(df_terrakube_commands(list, &c, &n, &err), 0);
    assert_int_equal(df_json_append(list, json("{'runtime': 'BASH'}"), &err), 0);
    assert_int_equal(df_terrakube_commands(list, &d, &n, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* A job whose only variable is this long. */
static void make_long(struct df_buf *out, size_t n)
{
    DF_JSON cJSON *job = json(LEAST);
    DF_FREE char *value = malloc(n + 1);
    assert_non_null(value);
    memset(value, 'v', n);
    value[n] = '\0';
    DF_FREE char *text = NULL;
    assert_int_equal(df_json_add_str(df_json_object_at(job, "variables"), "v", value, NULL), 0);
    text = df_json_print(job);
    assert_int_equal(df_buf_adds(out, text), 0);
}

static void a_job_of_ten_megabytes_is_read_and_one_beyond_the_limit_is_not(void **state)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p, q;
    DF_BUF struct df_buf ten = DF_BUF_INIT(32 * DF_MIB), more = DF_BUF_INIT(32 * DF_MIB);
    (void)state;
    make_long(&ten, 10 * DF_MIB);
    assert_int_equal(df_terrakube_payload_read(df_buf_str(&ten), ten.len, &p, &err), 0);
    assert_int_equal(strlen(df_json_str(p.variables, "v")), 10 * DF_MIB);
    make_long(&more, DF_LIMIT_TERRAKUBE_PAYLOAD);
    assert_int_equal(df_terrakube_payload_read(df_buf_str(&more), more.len, &q, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_string_equal(err.reason, "PayloadInvalid");
}

static void the_documented_size_of_a_payload_is_the_limit(void **state)
{
    (void)state;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_MIB);
    DF_FREE char *size = df_strf("up to %zu MiB", DF_LIMIT_TERRAKUBE_PAYLOAD / DF_MIB);
    size_t lines = 0;
    assert_int_equal(df_fs_read("docs/terrakube.md", &page, NULL), 0);
    for (char *rest = page.data, *line; (line = strsep(&rest, "\n"));) {
        if (!strstr(line, "payload") || !(strstr(line, " MiB") || strstr(line, " MB")))
            continue;
        if (!strstr(line, size))
            fail_msg("not \"%s\": %s", size, line);
        lines++;
    }
    assert_int_equal(lines, 2);
}

static void ephemeral_job_data_is_the_same_in_base64(void **state)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p, q, r;
    DF_JSON cJSON *job = json(LEAST);
    DF_FREE char *text = df_json_print(job);
    DF_BUF struct df_buf coded = DF_BUF_INIT(DF_MIB);
    (void)state;
    assert_int_equal(df_base64_encode(text, strlen(text), false, &coded, &err), 0);
    assert_int_equal(df_terrakube_payload_decode(df_buf_str(&coded), &p, &err), 0);
    assert_string_equal(p.job, "12");
    assert_int_equal(df_terrakube_payload_decode("not base64!", &q, &err), -1);
    assert_string_equal(err.reason, "PayloadInvalid");
    assert_non_null(strstr(err.message, "EphemeralJobData"));
    assert_int_equal(df_terrakube_payload_decode("bm8ganNvbg==", &r, &err), -1);
    assert_string_equal(err.reason, "PayloadInvalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorded_jobs_have_their_types),
        cmocka_unit_test(a_recorded_apply_is_read_as_it_stands),
        cmocka_unit_test(policies_and_the_list_of_variables_of_later_versions_are_given_on),
        cmocka_unit_test(what_old_versions_lack_has_the_defaults_of_the_api),
        cmocka_unit_test(unknown_members_that_restrict_nothing_are_ignored),
        cmocka_unit_test(unknown_members_that_may_restrict_are_refused),
        cmocka_unit_test(terragrunt_is_refused),
        cmocka_unit_test(members_of_a_wrong_kind_are_refused_by_name),
        cmocka_unit_test(a_refusal_shows_no_value_of_a_variable),
        cmocka_unit_test(a_refusal_can_be_told_to_its_step),
        cmocka_unit_test(the_folder_is_the_first_of_the_list),
        cmocka_unit_test(null_says_that_there_is_no_such_variable),
        cmocka_unit_test(an_uploaded_configuration_has_no_banner_unless_it_is_asked_for),
        cmocka_unit_test(commands_of_equal_priority_all_stay_in_their_order),
        cmocka_unit_test(a_step_has_a_bounded_number_of_commands),
        cmocka_unit_test(a_job_of_ten_megabytes_is_read_and_one_beyond_the_limit_is_not),
        cmocka_unit_test(the_documented_size_of_a_payload_is_the_limit),
        cmocka_unit_test(ephemeral_job_data_is_the_same_in_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
