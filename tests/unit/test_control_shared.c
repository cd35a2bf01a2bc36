/* The control loop over plans and applies that share a pod. The engine has the pod under the name
 * of the plan. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/model/labels.h"
#include "spawner/steps/standby.h"
#include "tests/unit/control_loop.h"
#include "tests/unit/pod_tokens.h"

#define PLAN "net-1-plan"
#define APPLY "net-1-apply"
#define ONE_POD "'placement':{'podPerStep':false}"

/* With the list in which the runner of a plan waits. */
static int make(void **state, const char *executor, const char *run_spec)
{
    if (pods_make(state, executor, run_spec) < 0)
        return -1;
    struct world *w = *state;
    return df_standby_new(&w->s.standby, NULL);
}

static int make_and_start(void **state, const char *executor, const char *run_spec)
{
    return make(state, executor, run_spec) < 0 ? -1 : pods_start(state);
}

static int setup(void **state)
{
    return make_and_start(state, ONE_POD, AUTO);
}

static int setup_with_one_slot(void **state)
{
    if (make(state, ONE_POD, AUTO) < 0)
        return -1;
    struct world *w = *state;
    w->config.limit_steps = 1;
    return pods_start(state);
}

/* The pass over the plan is over before that over the apply begins. */
static int setup_with_one_worker(void **state)
{
    if (make(state, ONE_POD, AUTO) < 0)
        return -1;
    struct world *w = *state;
    w->config.workers = 1;
    return pods_start(state);
}

static int setup_with_approval(void **state)
{
    return make_and_start(state, ONE_POD, ASKING);
}

static int setup_with_two_pods(void **state)
{
    return make_and_start(state, "", AUTO);
}

static int teardown(void **state)
{
    struct df_standby *runners = ((struct world *)*state)->s.standby;
    int result = world_teardown(state);
    df_standby_free(runners);
    return result;
}

/* ---- playing the runner of the pod ---- */

/* Its plan, claimed by pod_a with CLAIM_A. */
static struct runner begin_plan(struct world *w)
{
    struct fake_step *s = await_start(w, PLAN);
    cJSON *doc = NULL;
    struct df_err err = {0};
    while (claim_as(w, s, &pod_a, CLAIM_A, &doc, &err) < 0)
        fail_msg("claim: %s", err.message);
    struct runner r = runner_of(w, s, doc);
    df_json_wipe(doc);
    await_ref(w, PLAN);
    return r;
}

/* The pod lives on after the result. */
static struct runner end_plan(struct world *w, const char *result)
{
    struct runner r = begin_plan(w);
    struct df_err err = {0};
    put_plan(&r, "net-1");
    if (try_result(&r, result, &err) < 0)
        fail_msg("result: %s", err.message);
    return r;
}

/* The uid of the apply that was offered to the pod, once that is decided; NULL: none. The caller
 * frees. */
static char *next_of(const struct runner *plan)
{
    enum df_shared_pod_next next = DF_SHARED_POD_WAITS;
    char uid[DF_STANDBY_STEP];
    for (;;) {
        uint64_t mark = changes_mark(plan->w);
        DF_JSON cJSON *doc = get(plan->w, DF_KIND_TASK_ACTION, PLAN);
        assert_int_equal(df_runner_next(&plan->w->s, doc, &next, uid, NULL), 0);
        if (next != DF_SHARED_POD_WAITS)
            return uid[0] ? strdup(uid) : NULL;
        wait_for_change(plan->w, mark);
    }
}

static bool is_gone(void *arg)
{
    (void)arg;
    return false;
}

/* As the runner of the plan does: until it has a step, or there will be none. */
static int ask_next(const struct runner *plan, const struct pod *pod, const char *body, cJSON **ret,
                    struct df_err *err)
{
    DF_JSON cJSON *request = json(body);
    DF_JSON cJSON *preparation = NULL;
    DF_FREE char *token = token_of_pod(pod, plan->uid);
    const struct df_standby_request r = {
        .id = plan->uid, .token = token, .body = request, .gone = is_gone};
    int result;
    do
        result = df_runner_claim(&plan->w->s, &r, ret, &preparation, err);
    while (result == 0 && !*ret);
    assert_null(preparation);
    return result;
}

static void assert_pod_ends(const struct runner *plan)
{
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(ask_next(plan, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_null(doc);
}

/* With the token of that pod, which is for the plan. */
static int claim_apply(const struct runner *plan, const char *uid, const struct pod *pod,
                       const char *body, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *request = json(body);
    DF_FREE char *token = token_of_pod(pod, plan->uid);
    return df_step_claim(&plan->w->s, uid, token, request, ret, err);
}

/* The apply, after its plan in the same pod. *ret_plan: or NULL. */
static struct runner begin_apply(struct world *w, struct runner *ret_plan)
{
    struct runner plan = end_plan(w, PLANNED), r = {.w = w};
    cJSON *doc = NULL;
    struct df_err err = {0};
    if (ask_next(&plan, &pod_a, CLAIM_A, &doc, &err) < 0)
        fail_msg("claim of the apply: %s", err.message);
    (void)snprintf(r.name, sizeof(r.name), "%s", df_json_str(doc, "name"));
    (void)snprintf(r.uid, sizeof(r.uid), "%s", df_json_str(doc, "uid"));
    (void)snprintf(r.step_token, sizeof(r.step_token), "%s", df_json_str(doc, "stepToken"));
    df_json_wipe(doc);
    if (ret_plan)
        *ret_plan = plan;
    return r;
}

static void assert_one_pod(struct world *w)
{
    assert_int_equal(fake_look(w, PLAN).starts, 1);
    assert_int_equal(fake_look(w, APPLY).creates, 0);
}

/* ---- one pod ---- */

static void plan_and_apply_have_one_pod_and_tokens_of_their_own(void **state)
{
    struct world *w = *state;
    struct runner plan, apply = begin_apply(w, &plan);
    struct df_err err;
    DF_CLOSE int fd = -1;
    int64_t size, end;
    assert_string_equal(apply.name, APPLY);
    assert_string_not_equal(apply.uid, plan.uid);
    assert_string_not_equal(apply.step_token, plan.step_token);
    assert_fails(df_step_get_plan(&w->s, apply.uid, plan.step_token, &fd, &size, &err), err,
                 DF_ERR_DENIED, "");
    assert_fails(df_step_stream_end(&w->s, apply.uid, plan.step_token, DF_STREAM_LOG, &end, &err),
                 err, DF_ERR_DENIED, "");
    assert_int_equal(df_step_get_plan(&w->s, apply.uid, apply.step_token, &fd, &size, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.claimedBy.podUid", "pod-a");
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.name", PLAN);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.hostUid", plan.uid);
    assert_int_equal(try_result(&apply, APPLIED, NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    DF_FREE char *next = next_of(&plan);
    (void)next; /* the apply until it is settled, which its runner does not ask any more */
    end_processes(w, PLAN, 0, "exited with code 0");
    await_settled(w);
    assert_one_pod(w);
}

static void await_condition(struct world *w, const char *step, const char *message)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, step);
        if (task && df_streq(df_task_message(task), message))
            return;
        wait_for_change(w, mark);
    }
}

static void the_apply_has_the_slot_of_its_plan(void **state)
{
    struct world *w = *state;
    struct runner apply = begin_apply(w, NULL);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, APPLY);
    assert_true(df_label_has(task, DF_LABEL_LIVE));
    /* Nobody reads the state with the plan's password now. */
    await_value(w, DF_KIND_TASK_ACTION, PLAN, "status.auth.state", "");
    DF_JSON cJSON *plan = get(w, DF_KIND_TASK_ACTION, PLAN);
    assert_false(df_label_has(plan, DF_LABEL_LIVE));
    make_executor(w, "dns", "");
    run(w, "dns", AUTO);
    await_condition(w, "dns-1-plan", "1 step runs, the limit is 1 (limits.steps); it is the next");
    assert_int_equal(fake_look(w, "dns-1-plan").creates, 0);
    assert_int_equal(try_result(&apply, APPLIED, NULL), 0);
    end_processes(w, PLAN, 0, "exited with code 0");
    (void)await_start(w, "dns-1-plan"); /* the slot is free */
}

static void only_the_runner_of_the_plan_gets_the_apply(void **state)
{
    struct world *w = *state;
    struct runner plan = end_plan(w, PLANNED);
    DF_FREE char *uid = next_of(&plan);
    struct pod for_apply = pod_a;
    DF_FREE char *audience = df_strf("dayfly/%s", uid);
    cJSON *doc = NULL;
    struct df_err err;
    for_apply.audience = audience;
    /* Another pod; a process that read the token; a token for the apply itself; the tokens of the
     * plan. */
    assert_fails(claim_apply(&plan, uid, &pod_b, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                 "PodNotOfStep");
    assert_fails(claim_apply(&plan, uid, &pod_a, CLAIM_B, &doc, &err), err, DF_ERR_DENIED,
                 "PodNotOfStep");
    assert_fails(claim_apply(&plan, uid, &for_apply, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                 "TokenAudience");
    assert_fails(ask_next(&plan, &pod_b, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "PodNotOfStep");
    assert_fails(ask_next(&plan, &pod_a, CLAIM_B, &doc, &err), err, DF_ERR_DENIED, "PodNotOfStep");
    assert_fails(ask_next(&plan, &for_apply, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                 "TokenAudience");
    DF_JSON cJSON *request = json(CLAIM_A);
    assert_fails(df_step_claim(&w->s, uid, plan.step_token, request, &doc, &err), err,
                 DF_ERR_DENIED, "");
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.claimedBy", "");
    for (int again = 0; again < 2; again++) { /* its first answer may have been lost */
        assert_int_equal(claim_apply(&plan, uid, &pod_a, CLAIM_A, &doc, NULL), 0);
        df_json_wipe(doc);
        doc = NULL;
    }
}

static void
the_document_of_the_plan_says_that_its_pod_stays_and_that_of_the_apply_does_not(void **state)
{
    struct world *w = *state;
    struct runner plan, apply = begin_apply(w, &plan);
    assert_value(w, DF_KIND_TASK_ACTION, PLAN, "spec.keepsPodFor.taskAction", APPLY);
    assert_value(w, DF_KIND_TASK_ACTION, PLAN, "spec.keepsPodFor.timeoutSeconds", "3600");
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "spec.keepsPodFor", "");
    (void)apply;
}

/* ---- two pods ---- */

static void an_apply_whose_pod_is_gone_gets_one_of_its_own(void **state)
{
    struct world *w = *state;
    struct runner plan = end_plan(w, PLANNED);
    DF_FREE char *uid = next_of(&plan);
    cJSON *doc = NULL;
    struct df_err err;
    end_processes(w, PLAN, 0, "exited with code 0");
    struct fake_step *s = await_start(w, APPLY);
    assert_string_equal(s->uid, uid);
    await_ref(w, APPLY);
    /* The old runner was only frozen. */
    assert_int_equal(claim_apply(&plan, uid, &pod_a, CLAIM_A, &doc, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    DF_FREE char *next = next_of(&plan);
    assert_null(next);
    assert_int_equal(claim_as(w, s, &pod_b, CLAIM_B, &doc, NULL), 0);
    struct runner apply = runner_of(w, s, doc);
    df_json_wipe(doc);
    report(&apply, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
    assert_int_equal(s->starts, 1);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.systemFailures", "");
}

static void assert_two_pods(struct world *w)
{
    assert_value(w, DF_KIND_TASK_ACTION, PLAN, "spec.keepsPodFor", "");
    struct runner plan = end_plan(w, PLANNED);
    assert_pod_ends(&plan);
}

static void by_default_each_step_has_its_pod(void **state)
{
    struct world *w = *state;
    assert_two_pods(w);
    (void)await_start(w, APPLY);
}

static void a_run_that_needs_an_approval_has_two_pods(void **state)
{
    struct world *w = *state;
    assert_two_pods(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
}

static void a_pod_with_nothing_to_apply_ends(void **state)
{
    static const char *const results[] = {NOTHING_TO_DO, "{'exitCode':1,'reason':'PlanFailed'}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(results); i++) {
        struct world *w = *state;
        struct runner plan = end_plan(w, results[i]);
        assert_pod_ends(&plan);
        assert_int_equal(teardown(state) + setup(state), 0);
    }
}

static int set_separate(cJSON *executor, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set(df_json_object_at(executor, "spec"), "separateApprover", cJSON_CreateTrue(),
                       err);
}

/* The executor was changed while the plan ran. */
static void an_approval_that_nobody_expected_ends_the_pod(void **state)
{
    struct world *w = *state;
    struct runner plan = begin_plan(w);
    put_plan(&plan, "net-1");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_EXECUTOR, "net", set_separate, NULL, NULL, NULL), 0);
    assert_int_equal(try_result(&plan, PLANNED, NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_pod_ends(&plan);
}

/* ---- ends ---- */

static void an_apply_whose_pod_dies_ends_with_the_cause_and_is_not_started_again(void **state)
{
    struct world *w = *state;
    (void)begin_apply(w, NULL);
    (void)pthread_mutex_lock(&w->engine.lock);
    struct df_engine_observation *seen = &fake_find(&w->engine, PLAN)->seen;
    (void)snprintf(seen->reason, sizeof(seen->reason), "PodDeleted");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, PLAN, -1, "somebody deleted the pod");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "PodDeleted");
    await_settled(w);
    assert_value(w, DF_KIND_TASK_ACTION, PLAN, "status.reason", "Planned");
    assert_one_pod(w);
}

/* Its runner could not deliver it. */
static void the_result_that_an_apply_left_in_the_pod_is_read_before_the_plan_cleans_up(void **state)
{
    struct world *w = *state;
    (void)begin_apply(w, NULL);
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, PLAN);
    s->result = strdup("{\"exitCode\":0,\"reason\":\"Applied\"}");
    s->seen.has_result = true;
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, PLAN, 0, "exited with code 0");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
    assert_int_equal(s->cleanups, 1);
}

static int cancel_run(struct world *w)
{
    return df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "tester", NULL, NULL, NULL);
}

static void a_cancel_reaches_the_apply_in_the_pod(void **state)
{
    struct world *w = *state;
    struct runner apply = begin_apply(w, NULL);
    assert_int_equal(cancel_run(w), 0);
    await_cancel(w, PLAN);
    assert_int_equal(
        try_result(&apply, "{'exitCode':1,'reason':'Canceled','message':'stopped'}", NULL), 0);
    end_processes(w, PLAN, 1, "stopped");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    await_settled(w);
    assert_one_pod(w);
}

static void a_cancel_before_the_apply_ends_the_pod(void **state)
{
    struct world *w = *state;
    struct runner plan = end_plan(w, PLANNED);
    DF_FREE char *uid = next_of(&plan);
    cJSON *doc = NULL;
    struct df_err err;
    assert_int_equal(cancel_run(w), 0);
    await_cancel(w, PLAN);
    assert_fails(claim_apply(&plan, uid, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT,
                 "StepOver");
    end_processes(w, PLAN, -1, "killed");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    await_settled(w);
    assert_one_pod(w);
}

static void a_run_whose_apply_is_taken_away_waits_for_the_pod(void **state)
{
    struct world *w = *state;
    (void)begin_apply(w, NULL);
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_TASK_ACTION, APPLY, NULL, NULL), 0);
    await_cancel(w, PLAN);
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_processes(w, PLAN, -1, "killed");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "StepDeleted");
    assert_one_pod(w);
}

#define TEST_OF(fn, with) cmocka_unit_test_setup_teardown(fn, with, teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST_OF(plan_and_apply_have_one_pod_and_tokens_of_their_own, setup),
        TEST_OF(the_apply_has_the_slot_of_its_plan, setup_with_one_slot),
        TEST_OF(only_the_runner_of_the_plan_gets_the_apply, setup),
        TEST_OF(the_document_of_the_plan_says_that_its_pod_stays_and_that_of_the_apply_does_not,
                setup),
        TEST_OF(an_apply_whose_pod_is_gone_gets_one_of_its_own, setup),
        TEST_OF(by_default_each_step_has_its_pod, setup_with_two_pods),
        TEST_OF(a_run_that_needs_an_approval_has_two_pods, setup_with_approval),
        TEST_OF(a_pod_with_nothing_to_apply_ends, setup),
        TEST_OF(an_approval_that_nobody_expected_ends_the_pod, setup),
        TEST_OF(an_apply_whose_pod_dies_ends_with_the_cause_and_is_not_started_again, setup),
        TEST_OF(the_result_that_an_apply_left_in_the_pod_is_read_before_the_plan_cleans_up,
                setup_with_one_worker),
        TEST_OF(a_cancel_reaches_the_apply_in_the_pod, setup),
        TEST_OF(a_cancel_before_the_apply_ends_the_pod, setup),
        TEST_OF(a_run_whose_apply_is_taken_away_waits_for_the_pod, setup),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
