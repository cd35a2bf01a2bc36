/* Policies of the configuration, and what follows from their results for a step and its run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/policy.h"
#include "tests/unit/control_loop.h"

#define OPA "'opa':{'data':['/r']}"

/* ---- the configuration ---- */

static void every_fault_is_named_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *policies, *said; /* NULL: none */
    } cases[] = {
        {"{}", NULL},
        {"{'a':{'level':'hard'," OPA "}}", NULL},
        {"{'a':{'level':'soft','program':['x'],'overrideBy':['ann'],'files':['/f'],'memoryMiB':16,"
         "'timeout':'1h','appliesTo':{'matchLabels':{'team':'net'}}}}",
         NULL},
        {"{'a':{'level':'advisory','program':['/x','relative']}}", NULL},
        {"{'a':7}", "a: must be a mapping"},
        {"{'A b':{'level':'hard'," OPA "}}", "\"A b\" is not a valid name"},
        {"{'a':{" OPA "}}", "a.level: is required"},
        {"{'a':{'level':'mandatory'," OPA "}}", "a.level"},
        {"{'a':{'level':'hard'}}", "a: must have either program or opa"},
        {"{'a':{'level':'hard','program':['x']," OPA "}}", "a: must have either program or opa"},
        {"{'a':{'level':'hard','program':[]}}", "a.program"},
        {"{'a':{'level':'hard','program':['bin/x']}}", "a.program: \"bin/x\" must be an absolute"},
        {"{'a':{'level':'hard','opa':{'data':[]}}}", "a.opa.data"},
        {"{'a':{'level':'hard','opa':{}}}", "a.opa.data: is required"},
        {"{'a':{'level':'hard','opa':{'data':['r']}}}", "a.opa.data[0]: \"r\" must be an absolute"},
        {"{'a':{'level':'hard','opa':{'data':['/r'],'query':'main'}}}", "a.opa.query"},
        {"{'a':{'level':'hard','files':['f']," OPA "}}", "a.files[0]"},
        {"{'a':{'level':'hard','overrideBy':['ann']," OPA "}}", "a.overrideBy: is for the level"},
        {"{'a':{'level':'soft','overrideBy':[]," OPA "}}", "a.overrideBy"},
        {"{'a':{'level':'hard','appliesTo':{}," OPA "}}", "a.appliesTo.matchLabels: is required"},
        {"{'a':{'level':'hard','appliesTo':{'matchLabels':{}}," OPA "}}", "a.appliesTo"},
        {"{'a':{'level':'hard','appliesTo':{'matchLabels':{'a b':'c'}}," OPA "}}", "a.appliesTo"},
        {"{'a':{'level':'hard','timeout':'90m'," OPA "}}", "a.timeout: \"90m\" must be from 1s"},
        {"{'a':{'level':'hard','timeout':'0s'," OPA "}}", "a.timeout"},
        {"{'a':{'level':'hard','memoryMiB':15," OPA "}}", "a.memoryMiB"},
        {"{'a':{'level':'hard','network':true," OPA "}}", "a.network"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *policies = json(cases[i].policies);
        struct df_err err = {0};
        int result = df_policies_check(policies, &err);
        if ((result == 0) != !cases[i].said ||
            (cases[i].said && !strstr(err.message, cases[i].said)))
            fail_msg("%s: %s", cases[i].policies, result < 0 ? err.message : "is accepted");
    }
}

static void there_are_no_more_than_a_run_can_tell_of(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        DF_JSON cJSON *policies = cJSON_CreateObject();
        for (int i = 0; i < DF_LIMIT_POLICIES + more; i++) {
            DF_FREE char *name = df_strf("p%d", i);
            assert_int_equal(df_json_add(policies, name, json("{'level':'hard'," OPA "}"), NULL),
                             0);
        }
        assert_int_equal(df_policies_check(policies, NULL), more ? -1 : 0);
    }
}

/* ---- which apply ---- */

#define THREE                                                                                      \
    "{'all':{'level':'hard'," OPA ",'timeout':'1500ms'},"                                          \
    "'net':{'level':'soft','program':['x','y'],'files':['/f'],'memoryMiB':64,"                     \
    "'appliesTo':{'matchLabels':{'team':'net','env':'prod'}}},"                                    \
    "'last':{'level':'advisory','program':['z']}}"

static void those_whose_labels_the_executor_has_are_noted_in_a_step_that_plans(void **state)
{
    (void)state;
    static const struct {
        const char *executor, *task, *noted; /* NULL: none */
    } cases[] = {
        {"{'metadata':{}}", "{'spec':{'action':'plan'}}",
         "[{'name':'all','level':'hard'},{'name':'last','level':'advisory'}]"},
        {"{'metadata':{'labels':{'team':'net','env':'dev'}}}", "{'spec':{'action':'plan'}}",
         "[{'name':'all','level':'hard'},{'name':'last','level':'advisory'}]"},
        {"{'metadata':{'labels':{'env':'prod','team':'net'}}}",
         "{'spec':{'action':'plan-destroy'}}",
         "[{'name':'all','level':'hard'},{'name':'net','level':'soft'},"
         "{'name':'last','level':'advisory'}]"},
        {"{'metadata':{}}", "{'spec':{'action':'apply'}}", NULL},
        {"{'metadata':{}}", "{'spec':{'action':'state'}}", NULL},
        {"{'metadata':{}}", "{'spec':{'action':'plan','runtime':{'name':'platform'}}}", NULL},
    };
    DF_JSON cJSON *policies = json(THREE);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *executor = json(cases[i].executor), *task = json(cases[i].task);
        assert_int_equal(df_policies_note(policies, executor, task, NULL), 0);
        if (cases[i].noted)
            assert_at(task, "spec.policies", cases[i].noted);
        else
            assert_null(df_json_at(task, "spec.policies"));
        assert_int_equal(df_policies_note(NULL, executor, task, NULL), 0);
    }
}

static void other_labels_may_lead_to_other_policies(void **state)
{
    (void)state;
    DF_JSON cJSON *policies = json(THREE), *bare = json("{'metadata':{}}");
    DF_JSON cJSON *both = json("{'metadata':{'labels':{'team':'net','env':'prod'}}}");
    DF_JSON cJSON *more = json("{'metadata':{'labels':{'env':'prod','team':'net','a':'b'}}}");
    DF_JSON cJSON *half = json("{'metadata':{'labels':{'team':'net'}}}");
    assert_true(df_policies_are_same(policies, both, more));
    assert_true(df_policies_are_same(policies, bare, half));
    assert_false(df_policies_are_same(policies, both, half));
    assert_false(df_policies_are_same(policies, bare, both));
    assert_true(df_policies_are_same(NULL, bare, both));
}

static void a_runner_is_told_what_to_execute_and_of_one_that_is_gone_its_name(void **state)
{
    (void)state;
    DF_JSON cJSON *policies = json(THREE), *doc = json("{}"), *other = json("{}");
    DF_JSON cJSON *task = json("{'spec':{'policies':[{'name':'all','level':'soft'},"
                               "{'name':'net','level':'soft'},{'name':'gone','level':'hard'}]}}");
    DF_JSON cJSON *plain = json("{'spec':{}}");
    assert_int_equal(df_policies_order(policies, task, doc, NULL), 0);
    assert_at(doc, "policies",
              "[{'name':'all','level':'soft'," OPA ",'timeoutSeconds':2},"
              "{'name':'net','level':'soft','program':['x','y'],'files':['/f'],'memoryMiB':64,"
              "'timeoutSeconds':60},{'name':'gone','level':'hard'}]");
    assert_int_equal(df_policies_order(policies, plain, other, NULL), 0);
    assert_null(df_json_at(other, "policies"));
}

/* ---- results ---- */

#define ASKED "'spec':{'policies':[{'name':'a','level':'hard'},{'name':'b','level':'soft'}]}"
#define MISSING "'messages':['could not be evaluated: its runner gave no result about this plan']"

static void each_that_was_asked_for_has_a_result_about_the_plan_that_is_stored(void **state)
{
    (void)state;
    static const struct {
        const char *report;
        bool is_stored;
        const char *results; /* NULL: none */
    } cases[] = {
        {"{'plan':{'sha256':'1'},'policies':[{'name':'b','passed':false,'messages':['no']},"
         "{'name':'a','passed':true,'level':'advisory','messages':[]},{'name':'c','passed':true}]}",
         true,
         "[{'name':'a','level':'hard','passed':true,'messages':[]},"
         "{'name':'b','level':'soft','passed':false,'messages':['no']}]"},
        /* of another plan, or of none */
        {"{'plan':{'sha256':'2'},'policies':[{'name':'a','passed':true},{'name':'b','passed':true}]"
         "}",
         true,
         "[{'name':'a','level':'hard','passed':false," MISSING "},"
         "{'name':'b','level':'soft','passed':false," MISSING "}]"},
        {"{'policies':[{'name':'a','passed':true},{'name':'b','passed':true}]}", true,
         "[{'name':'a','level':'hard','passed':false," MISSING "},"
         "{'name':'b','level':'soft','passed':false," MISSING "}]"},
        /* an older runner, and nonsense */
        {"{'plan':{'sha256':'1'},'policies':[{'name':'a','passed':'true'},7,{'passed':true},"
         "{'name':'b','passed':true,'messages':'x'}]}",
         true,
         "[{'name':'a','level':'hard','passed':false," MISSING "},"
         "{'name':'b','level':'soft','passed':true,'messages':[]}]"},
        /* a step that failed tells what it has found out */
        {"{'policies':[{'name':'a','passed':false,'messages':['no',7]}]}", false,
         "[{'name':'a','level':'hard','passed':false,'messages':['no']}]"},
        {"{}", false, NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *task = json("{" ASKED ",'status':{'plan':{'sha256':'1'}}}");
        DF_JSON cJSON *report = json(cases[i].report);
        assert_int_equal(df_policies_take(task, report, cases[i].is_stored, NULL), 0);
        if (cases[i].results)
            assert_at(task, "status.policies", cases[i].results);
        else
            assert_null(df_json_at(task, "status.policies"));
    }
}

static void messages_are_bounded_whoever_sends_them(void **state)
{
    (void)state;
    DF_JSON cJSON *task = json("{" ASKED ",'status':{}}"), *report = json("{'policies':[]}");
    cJSON *said = cJSON_CreateObject(), *messages = df_json_array_at(said, "messages");
    DF_FREE char *longer = df_strf("%0*d", DF_LIMIT_POLICY_MESSAGE + 1, 0);
    assert_int_equal(df_json_put(said, NULL, DF_STR("name", "a"), DF_BOOL("passed", true)), 0);
    assert_int_equal(df_json_append_str(messages, longer, NULL), 0);
    for (int i = 0; i < 2 * DF_LIMIT_POLICY_MESSAGES; i++)
        assert_int_equal(df_json_append_str(messages, longer + 1, NULL), 0);
    assert_int_equal(df_json_append(df_json_array_at(report, "policies"), said, NULL), 0);
    assert_int_equal(df_policies_take(task, report, false, NULL), 0);
    const cJSON *kept = df_json_at(df_json_at(task, "status.policies")->child, "messages");
    assert_int_equal(cJSON_GetArraySize(kept), DF_LIMIT_POLICY_MESSAGES + 1);
    assert_string_equal(kept->child->valuestring, longer + 1);
}

static void a_plan_is_applied_only_with_its_results(void **state)
{
    (void)state;
    static const struct {
        const char *status, *said; /* NULL: it may be */
    } cases[] = {
        {"{'policies':[{'name':'a','level':'hard','passed':true},"
         "{'name':'b','level':'soft','passed':false}]}",
         NULL},
        {"{'policies':[{'name':'a','level':'hard','passed':false,'messages':['no']},"
         "{'name':'b','level':'soft','passed':true}]}",
         "policy a: no"},
        {"{'policies':[{'name':'a','level':'hard','passed':false,'messages':[]},"
         "{'name':'b','level':'soft','passed':true}]}",
         "policy a: not passed"},
        {"{'policies':[{'name':'a','level':'hard','passed':true}]}",
         "policy b: there is no result"},
        {"{}", "policy a: there is no result"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *task = json("{" ASKED "}");
        struct df_err err = {0};
        assert_int_equal(df_json_add(task, "status", json(cases[i].status), NULL), 0);
        assert_int_equal(df_policies_hold(task, &err), cases[i].said ? -1 : 0);
        if (cases[i].said && !strstr(err.message, cases[i].said))
            fail_msg("%s: %s", cases[i].status, err.message);
        assert_string_equal(err.reason, cases[i].said ? "PolicyFailed" : "");
    }
}

/* ---- overrides ---- */

static void a_soft_policy_is_overridden_by_whom_it_names_or_an_admin_with_a_reason(void **state)
{
    (void)state;
    static const char both[] = "{'policies':[{'name':'named','level':'soft','passed':false},"
                               "{'name':'plain','level':'soft','passed':false}]}";
    static const char named[] = "{'policies':[{'name':'named','level':'soft','passed':false}]}";
    static const char gone[] = "{'policies':[{'name':'gone','level':'soft','passed':false}]}";
    static const char fine[] = "{'policies':[{'name':'named','level':'soft','passed':true},"
                               "{'name':'plain','level':'advisory','passed':false}]}";
    static const struct {
        const char *status, *caller, *reason;
        enum df_role role;
        enum df_err_class refused; /* DF_ERR_NONE: not */
    } cases[] = {
        {fine, "eve", NULL, DF_ROLE_WRITE, DF_ERR_NONE},
        {named, "ann", "why", DF_ROLE_WRITE, DF_ERR_NONE},
        {named, "ann", NULL, DF_ROLE_WRITE, DF_ERR_USER},
        {named, "ann", "", DF_ROLE_ADMIN, DF_ERR_USER},
        {named, "eve", "why", DF_ROLE_ADMIN, DF_ERR_DENIED},
        {named, NULL, "why", DF_ROLE_ADMIN, DF_ERR_DENIED},
        {both, "ann", "why", DF_ROLE_WRITE, DF_ERR_DENIED},
        {both, "ann", "why", DF_ROLE_ADMIN, DF_ERR_NONE},
        {gone, "ann", "why", DF_ROLE_WRITE, DF_ERR_DENIED},
        {gone, "eve", "why", DF_ROLE_ADMIN, DF_ERR_NONE},
    };
    DF_JSON cJSON *policies = json("{'named':{'level':'soft','overrideBy':['ann']," OPA "},"
                                   "'plain':{'level':'soft'," OPA "}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *run = json("{'metadata':{'name':'net-1'}}");
        struct df_err err = {0};
        assert_int_equal(df_json_add(run, "status", json(cases[i].status), NULL), 0);
        int result = df_policies_check_override(policies, run, cases[i].role, cases[i].caller,
                                                cases[i].reason, &err);
        if ((result < 0) != (cases[i].refused != DF_ERR_NONE) || err.cls != cases[i].refused)
            fail_msg("case %zu: %d, %s", i, result, err.message);
    }
}

/* ---- in the control loop ---- */

static void use(struct world *w, const char *level)
{
    DF_FREE char *text = df_strf("{'look':{'level':'%s'," OPA "}}", level);
    w->config.policies = json(text);
}

static int forget_policies(void **state)
{
    struct world *w = *state;
    cJSON *policies = w->config.policies;
    int result = world_teardown(state);
    cJSON_Delete(policies);
    return result;
}

/* results: of the report, with `'` for quotes. */
static void plan_with(struct world *w, const char *results)
{
    struct runner r = claim(w, "net-1-plan");
    put_plan(&r, "net-1");
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    DF_FREE char *body =
        df_strf("{'exitCode':0,'reason':'Planned','hasChanges':true,'plan':{'sha256':'%s'},"
                "'policies':[%s]}",
                df_json_str(task, "status.plan.sha256"), results);
    report(&r, body);
}

static void no_approval_is_automatic_while_a_soft_policy_has_failed(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    use(w, "soft");
    begin(w, AUTO);
    plan_with(w, "{'name':'look','passed':false,'messages':['no']}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    struct df_decision d = {
        .approves = true, .verbs = DF_VERBS_ADMIN, .actor = "ann", .role = DF_ROLE_ADMIN};
    assert_int_equal(df_request_decide(&w->s, "net-1", &d, NULL, &err), -1);
    assert_string_equal(err.reason, "InvalidDocument");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
    d.reason = "agreed";
    assert_int_equal(df_request_decide(&w->s, "net-1", &d, NULL, NULL), 0);
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision.reason", "agreed");
}

static void a_soft_policy_that_passed_asks_nobody(void **state)
{
    struct world *w = *state;
    use(w, "soft");
    begin(w, AUTO);
    plan_with(w, "{'name':'look','passed':true,'messages':[]}");
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

/* Its runner is older than policies. */
static void a_plan_without_a_result_of_a_hard_policy_is_never_applied(void **state)
{
    struct world *w = *state;
    use(w, "hard");
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "PolicyFailed");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

static void an_advisory_policy_without_a_result_is_told(void **state)
{
    struct world *w = *state;
    use(w, "advisory");
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    DF_JSON cJSON *run = get(w, DF_KIND_RUN, "net-1");
    assert_at(run, "status.policies",
              "[{'name':'look','level':'advisory','passed':false," MISSING "}]");
}

#define JUDGED(fn) cmocka_unit_test_setup_teardown(fn, world_setup, forget_policies)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_is_named_with_its_path),
        cmocka_unit_test(there_are_no_more_than_a_run_can_tell_of),
        cmocka_unit_test(those_whose_labels_the_executor_has_are_noted_in_a_step_that_plans),
        cmocka_unit_test(other_labels_may_lead_to_other_policies),
        cmocka_unit_test(a_runner_is_told_what_to_execute_and_of_one_that_is_gone_its_name),
        cmocka_unit_test(each_that_was_asked_for_has_a_result_about_the_plan_that_is_stored),
        cmocka_unit_test(messages_are_bounded_whoever_sends_them),
        cmocka_unit_test(a_plan_is_applied_only_with_its_results),
        cmocka_unit_test(a_soft_policy_is_overridden_by_whom_it_names_or_an_admin_with_a_reason),
        JUDGED(no_approval_is_automatic_while_a_soft_policy_has_failed),
        JUDGED(a_soft_policy_that_passed_asks_nobody),
        JUDGED(a_plan_without_a_result_of_a_hard_policy_is_never_applied),
        JUDGED(an_advisory_policy_without_a_result_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
