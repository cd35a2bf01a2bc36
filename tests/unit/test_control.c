/* The control loop over a real store, with an engine and runners that the test plays. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/steps/sealed.h"
#include "tests/unit/control_loop.h"

/* ---- a run from its beginning to its end ---- */

static void an_approved_run_is_planned_and_applied_in_two_steps(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Applied");
    assert_value(w, DF_KIND_RUN, "net-1", "status.planSummary.add", "1");
    assert_value(w, DF_KIND_RUN, "net-1", "status.hasChanges", "true");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.state", "provisioned");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "done");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.lastRun.phase", "Succeeded");
    await_settled(w);
    assert_value(w, DF_KIND_RUN, "net-1", "metadata.labels", "{\"dayfly.dev/executor\":\"net\"}");
}

static void a_run_that_needs_approval_waits_for_it(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "pending");
    DF_JSON cJSON *doc = NULL;
    const struct df_decision d = {.approves = true, .verbs = DF_VERBS_WRITE, .actor = "ann"};
    assert_int_equal(df_request_decide(&w->s, "net-1", &d, &doc, NULL), 0);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.approvedBy", "ann");
}

static void a_discarded_run_is_not_applied_and_its_plan_is_gone(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    DF_FREE char *key = df_strf("plans/%s", uid);
    int64_t size = 0;
    assert_int_equal(df_blob_size(w->s.blobs, key, &size, NULL), 0);
    assert_true(size > 0);
    assert_int_equal(decide(w, "net-1", false, DF_VERBS_WRITE, "bob", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Discarded");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
    while (size > 0) { /* it goes when the run's end is durable */
        assert_int_equal(df_blob_size(w->s.blobs, key, &size, NULL), 0);
        (void)poll(NULL, 0, 1);
    }
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "ready");
}

static void a_plan_without_changes_ends_the_run(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "NoChanges");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

static void a_dry_run_plans_alone_and_a_destroy_plans_the_destruction(void **state)
{
    struct world *w = *state;
    begin(w, "{'action':'dry-run'}");
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Planned");
    run(w, "net", AUTO);
    play_plan(w, "net-2", "net-2-plan");
    play_apply(w, "net-2-apply");
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Succeeded");
    run(w, "net", "{'action':'destroy','autoApprove':true}");
    await_value(w, DF_KIND_TASK_ACTION, "net-3-plan", "spec.action", "plan-destroy");
}

static void a_failed_plan_fails_the_run_with_its_reason(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, "{'exitCode':1,'reason':'PlanFailed','message':'no such thing'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "PlanFailed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "no such thing");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "error");
}

/* ---- what a run is made of ---- */

static void a_later_edit_of_the_executor_does_not_reach_a_run_under_way(void **state)
{
    struct world *w = *state;
    make_executor(w, "net",
                  "'variables':{'a':1,'b':2},'arguments':['-parallelism=2'],"
                  "'placement':{'image':'i','nodeSelector':{'disk':'ssd'}}");
    run(w, "net",
        "{'action':'provision','autoApprove':true,'variables':{'b':3},"
        "'arguments':['-target=x'],'placement':{'nodeSelector':{'zone':'a'}}}");
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
    cJSON *spec = df_json_object_at(executor, "spec");
    assert_int_equal(df_json_set(spec, "variables", json("{'a':9}"), NULL), 0);
    assert_int_equal(df_store_update(w->s.store, DF_KIND_EXECUTOR, executor, NULL, NULL), 0);
    start(w);
    (void)await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.variables", "{\"a\":1,\"b\":3}");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.arguments",
                 "[\"-parallelism=2\",\"-target=x\"]");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.placement",
                 "{\"image\":\"i\",\"nodeSelector\":{\"disk\":\"ssd\",\"zone\":\"a\"}}");
}

static void timeouts_are_the_executors_else_the_configured_ones(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'timeouts':{'plan':'90s','grace':'1ms'}");
    run(w, "net", AUTO);
    start(w);
    (void)await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.timeoutSeconds", "90");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.graceSeconds", "1");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.pendingSeconds", "120");
}

static void a_request_for_a_run_is_checked(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        const char *names;
    } bad[] = {{"{}", "action"},
               {"{'action':'fly'}", "action"},
               {"{'action':'provision','number':7}", "number"},
               {"{'action':'provision','snapshot':{}}", "snapshot"},
               {"{'action':'provision','variables':[]}", "variables"},
               {"{'action':'provision','arguments':['-lock=false']}", "-lock"},
               {"{'action':'provision','autoApprove':'yes'}", "autoApprove"},
               {"{'action':'provision','placement':{'image':'A'}}", "spec.placement.image"},
               {"{'action':'provision','placement':{'resources':{'requests':{'cpu':'2'}}}}",
                "more than the limit"},
               {"[]", "object"}};
    make_executor(w, "net", "'placement':{'resources':{'limits':{'cpu':'1'}}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_JSON cJSON *body = json(bad[i].body), *made = NULL;
        struct df_err err = {0};
        assert_int_equal(
            df_request_create_run(
                &w->s, "net",
                &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "t"}, &made,
                &err),
            -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, bad[i].names))
            fail_msg("%s: %s", bad[i].body, err.message);
    }
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.runCounter", "0");
}

static void who_may_not_is_denied(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *body = json(ASKING), *destroy = json("{'action':'destroy'}"), *made = NULL;
    make_executor(w, "net", "");
    assert_int_equal(df_request_create_run(
                         &w->s, "net",
                         &(struct df_run_request){body, NULL, {DF_VERBS_READ, DF_ROLE_READ}, "t"},
                         &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(df_request_create_run(&w->s, "net",
                                           &(struct df_run_request){
                                               destroy, NULL, {DF_VERBS_WRITE, DF_ROLE_WRITE}, "t"},
                                           &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    run(w, "net", ASKING);
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_READ, "t", NULL, NULL, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_READ, "t", &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(df_request_create_run(
                         &w->s, "nil",
                         &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "t"},
                         &made, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void a_decision_is_taken_once_and_only_when_asked_for(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    run(w, "net", ASKING);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "t", &err), -1);
    assert_string_equal(err.reason, "WrongState");
    start(w);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "t", NULL), 0);
    assert_int_equal(decide(w, "net-1", false, DF_VERBS_WRITE, "t", &err), -1);
    assert_string_equal(err.reason, "WrongState");
}

/* ---- order and limits ---- */

static void runs_of_one_executor_go_one_after_the_other_in_their_order(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    for (int i = 0; i < 3; i++)
        run(w, "net", AUTO);
    start(w);
    for (int i = 1; i <= 3; i++) {
        char name[16], step[32];
        (void)snprintf(name, sizeof(name), "net-%d", i);
        (void)snprintf(step, sizeof(step), "net-%d-plan", i);
        struct runner r = claim(w, step);
        for (int later = i + 1; later <= 3; later++) {
            (void)snprintf(name, sizeof(name), "net-%d", later);
            assert_value(w, DF_KIND_RUN, name, "status.phase", "Pending");
        }
        report(&r, NOTHING_TO_DO);
    }
    await_value(w, DF_KIND_RUN, "net-3", "status.phase", "Succeeded");
}

static void a_run_behind_another_says_so_until_its_turn_comes(void **state)
{
    struct world *w = *state;
    static const char behind[] = "waits for its turn: earlier runs of executor net come first";
    make_executor(w, "net", "");
    run(w, "net", AUTO);
    run(w, "net", AUTO);
    start(w);
    struct runner r = claim(w, "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-2", "status.message", behind);
    report(&r, NOTHING_TO_DO);
    r = claim(w, "net-2-plan");
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Running");
    DF_JSON cJSON *begun = get(w, DF_KIND_RUN, "net-2");
    assert_null(df_json_at(begun, "status.message"));
    report(&r, NOTHING_TO_DO);
}

/* ---- a run that takes no turn ---- */

static void a_dry_run_beside_a_waiting_run_is_planned_without_a_lock(void **state)
{
    struct world *w = *state;
    struct df_step_state_access a;
    begin_planned(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    run(w, "net", "{'action':'dry-run'}");
    struct runner r = claim(w, "net-2-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-2-plan", "spec.dryRun", "true");
    await_value(w, DF_KIND_RUN, "net-2", "status.beside", "net-1");
    assert_int_equal(df_step_state_access(&w->s, r.uid, r.state_password, &a, NULL), 0);
    assert_false(a.may_lock || a.may_write);
    put_plan(&r, "net-2");
    report(&r, PLANNED);
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.status", "pending");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.lastRun.name", "net-1");
}

static void a_run_does_not_wait_for_a_dry_run_and_a_deletion_does(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    make_executor(w, "net", "");
    run(w, "net", "{'action':'dry-run'}");
    start(w);
    struct runner dry = claim(w, "net-1-plan");
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-2-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "Succeeded");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "done");
    assert_int_equal(
        df_request_mark_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "ann", NULL, &err), -1);
    assert_non_null(strstr(err.message, "executor net has unfinished runs"));
    report(&dry, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_int_equal(
        df_request_mark_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "ann", NULL, &err), 0);
}

static void a_task_that_only_has_the_name_of_a_step_is_not_taken_for_it(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    DF_JSON cJSON *other =
        json("{'metadata':{'name':'net-1-apply'},'spec':{'action':'workflow','executorRef':{"
             "'name':'net'}},'status':{'conditions':[{'type':'Progressing','status':'False',"
             "'reason':'Done'},{'type':'Succeeded','status':'True','reason':'Done'}]}}");
    assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, other, NULL, NULL), 0);
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "NameTaken");
}

/* ---- a plan that is not of the present state any more ---- */

#define STALE                                                                                      \
    "{'exitCode':1,'reason':'PlanStale','message':'the state has changed since the plan was "      \
    "made'}"

/* The run is planned and approved, and its apply finds another state. */
static void fail_stale(struct world *w, const char *run)
{
    DF_FREE char *plan = df_strf("%s-plan", run), *apply = df_strf("%s-apply", run);
    play_plan(w, run, plan);
    await_value(w, DF_KIND_RUN, run, "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, run, true, DF_VERBS_WRITE, "ann", NULL), 0);
    struct runner r = claim(w, apply);
    report(&r, STALE);
    await_value(w, DF_KIND_RUN, run, "status.phase", "Failed");
}

static void a_stale_plan_is_made_anew_once_with_what_was_asked_for(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'replan':true");
    start(w);
    run(w, "net",
        "{'action':'provision','variables':{'size':3},'secrets':{'variables':{'key':'hunter22'}}}");
    fail_stale(w, "net-1");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "the state has changed since the plan was made; run net-1-again plans again");
    assert_value(w, DF_KIND_RUN, "net-1", "status.replacedBy", "net-1-again");
    assert_value(w, DF_KIND_RUN, "net-1-again", "spec.replaces", "net-1");
    assert_value(w, DF_KIND_RUN, "net-1-again", "spec.number", "2");
    assert_value(w, DF_KIND_RUN, "net-1-again", "spec.variables.size", "3");
    assert_value(w, DF_KIND_RUN, "net-1-again", "spec.requestedBy", "tester");
    assert_value(w, DF_KIND_RUN, "net-1-again", "spec.requestedRole", "admin");
    DF_JSON cJSON *again = get(w, DF_KIND_RUN, "net-1-again");
    DF_SECRET_JSON cJSON *secrets = NULL;
    assert_int_equal(df_sealed_get(&w->s, again, &secrets, NULL), 0);
    assert_string_equal(df_json_str(secrets, "variables.key"), "hunter22");
    assert_null(df_json_at(again, "spec.decision"));
    struct df_audit_filter f = {
        .words = {[DF_AUDIT_NAME] = "net-1-again", [DF_AUDIT_ACTION] = "create"}};
    DF_JSON cJSON *noted = NULL;
    assert_int_equal(df_store_audit_list(w->s.store, &f, NULL, 10, &noted, NULL, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(noted), 1);
    assert_string_equal(df_json_str(noted->child, "detail"), "replaces net-1");

    fail_stale(w, "net-1-again");
    assert_value(w, DF_KIND_RUN, "net-1-again", "status.message",
                 "the state has changed since the plan was made");
    assert_null(get(w, DF_KIND_RUN, "net-1-again-again"));
}

static void a_stale_plan_is_the_end_where_nothing_else_is_said(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    start(w);
    run(w, "net", ASKING);
    fail_stale(w, "net-1");
    assert_null(get(w, DF_KIND_RUN, "net-1-again"));
}

static void a_run_says_why_its_stale_plan_is_not_made_anew(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *foreign = json("{'metadata':{'name':'net-1-again'},'spec':{}}");
    make_executor(w, "net", "'replan':true");
    assert_int_equal(df_store_create(w->s.store, DF_KIND_RUN, foreign, NULL, NULL), 0);
    start(w);
    run(w, "net", ASKING);
    fail_stale(w, "net-1");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "the state has changed since the plan was made; no run plans again: there is "
                 "another run net-1-again");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(an_approved_run_is_planned_and_applied_in_two_steps),
        TEST(a_run_that_needs_approval_waits_for_it),
        TEST(a_discarded_run_is_not_applied_and_its_plan_is_gone),
        TEST(a_plan_without_changes_ends_the_run),
        TEST(a_dry_run_plans_alone_and_a_destroy_plans_the_destruction),
        TEST(a_failed_plan_fails_the_run_with_its_reason),
        TEST(a_later_edit_of_the_executor_does_not_reach_a_run_under_way),
        TEST(timeouts_are_the_executors_else_the_configured_ones),
        TEST(a_request_for_a_run_is_checked),
        TEST(who_may_not_is_denied),
        TEST(a_decision_is_taken_once_and_only_when_asked_for),
        TEST(runs_of_one_executor_go_one_after_the_other_in_their_order),
        TEST(a_run_behind_another_says_so_until_its_turn_comes),
        TEST(a_dry_run_beside_a_waiting_run_is_planned_without_a_lock),
        TEST(a_run_does_not_wait_for_a_dry_run_and_a_deletion_does),
        TEST(a_stale_plan_is_made_anew_once_with_what_was_asked_for),
        TEST(a_stale_plan_is_the_end_where_nothing_else_is_said),
        TEST(a_run_says_why_its_stale_plan_is_not_made_anew),
        TEST(a_task_that_only_has_the_name_of_a_step_is_not_taken_for_it),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
