/* The control loop over an engine whose steps live in pods: others than the spawner may end them.
 */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pod_tokens.h"

#include "tests/unit/control_loop.h"

static void engine_sees(struct world *w, const char *step, const char *reason, const char *cause)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct df_engine_observation *seen = &fake_find(&w->engine, step)->seen;
    (void)snprintf(seen->reason, sizeof(seen->reason), "%s", reason);
    (void)snprintf(seen->cause, sizeof(seen->cause), "%s", cause);
    (void)pthread_mutex_unlock(&w->engine.lock);
    df_control_notify(w->s.control, step);
}

static void a_step_that_somebody_else_ended_ends_with_its_pod_and_says_by_what(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *result = json("{'exitCode':2,'reason':'Canceled','message':'interrupted'}");
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    engine_sees(w, "net-1-plan", "Evicted", "the pod was evicted");
    await_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.disruption.reason", "Evicted");
    for (int again = 0; again < 2; again++) /* its first answer may have been lost */
        assert_int_equal(df_step_result(&w->s, r.uid, r.step_token, result, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.interrupted.message", "interrupted");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    engine_sees(w, "net-1-plan", "PodDeleted", "somebody deleted the pod");
    end_processes(w, "net-1-plan", 2, "somebody deleted the pod");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Evicted");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "the pod was evicted (the runner: interrupted)");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.exitCode", "2");
    await_settled(w);
}

static _Atomic(const struct runner *) reports_while_asked;

/* A df_step_ops.status: before it answers, the runner reports that it was interrupted and the pod
 * ends. */
static int status_after_report(struct df_engine *e, const struct df_engine_step *step,
                               struct df_engine_observation *ret, struct df_err *err)
{
    const struct runner *r = atomic_exchange(&reports_while_asked, NULL);
    if (r && try_result(r, "{'exitCode':2,'reason':'Canceled','message':'interrupted'}", err) < 0)
        return -1;
    if (r)
        end_processes(r->w, r->name, 2, "the pod was evicted");
    return fake_status(e, step, ret, err);
}

static void a_report_that_comes_while_the_engine_is_asked_is_kept(void **state)
{
    struct world *w = *state;
    job_runner.step.status = status_after_report;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    atomic_store(&reports_while_asked, &r);
    engine_sees(w, "net-1-plan", "Evicted", "the pod was evicted");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "the pod was evicted (the runner: interrupted)");
    await_settled(w);
}

static struct {
    struct world *w;
    _Atomic int64_t from_us; /* 0: not at all */
    struct runner runner;    /* set by the claim */
    atomic_bool has_claimed;
} late;

/* A df_step_ops.status: the runner claims while the pass looks that is to end the step. */
static int status_after_claim(struct df_engine *e, const struct df_engine_step *step,
                              struct df_engine_observation *ret, struct df_err *err)
{
    int64_t from_us = atomic_load(&late.from_us);
    if (from_us && df_real_us() >= from_us && !atomic_load(&late.has_claimed)) {
        late.runner = claim(late.w, step->name);
        atomic_store(&late.has_claimed, true);
    }
    return fake_status(e, step, ret, err);
}

static void a_claim_that_comes_while_the_engine_is_asked_is_kept(void **state)
{
    struct world *w = *state;
    job_runner.step.status = status_after_claim;
    late.w = w;
    make_executor(w, "net", "'timeouts':{'pending':'2s'}");
    start(w);
    run(w, "net", AUTO);
    int64_t since_us = await_start(w, "net-1-plan")->seen.since_us;
    atomic_store(&late.from_us, since_us + INT64_C(1500000)); /* the next pass is the last one */
    while (!atomic_load(&late.has_claimed))
        (void)usleep(1000);
    report(&late.runner, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
}

/* The spawner was away until the pod had ended: its runner's word lies in the termination log. */
static void what_an_interrupted_runner_left_behind_is_explained_as_well(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    (void)claim(w, "net-1-plan");
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, "net-1-plan");
    s->result = strdup("{\"exitCode\":1,\"reason\":\"Canceled\",\"message\":\"stopped\"}");
    (void)snprintf(s->seen.reason, sizeof(s->seen.reason), "Preempted");
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-plan", 1, "it made room");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Preempted");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", "it made room (the runner: stopped)");
    await_settled(w);
}

static void steps_in_pods_live_on_when_the_spawner_stops(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    (void)claim(w, "net-1-plan");
    df_control_stop(w->s.control, true);
    assert_value(w, DF_KIND_RUN, "net-1", "spec.cancel", "");
    assert_int_equal(fake_look(w, "net-1-plan").cancels, 0);
}

static void a_cluster_that_cannot_be_watched_keeps_no_step_from_its_end(void **state)
{
    struct world *w = *state;
    (void)df_fail(&w->engine.status_error, DF_ERR_RETRY, "the list of jobs is not there yet");
    make_executor(w, "net", "");
    make_executor(w, "dns", "'timeouts':{'pending':'1s'}");
    start(w);
    run(w, "net", AUTO);
    run(w, "dns", AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_value(w, DF_KIND_RUN, "dns-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "dns-1", "status.reason", "NeverClaimed");
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "dns-1", "status.message");
    assert_non_null(strstr(message, "the list of jobs is not there yet"));
    assert_int_equal(fake_look(w, "net-1-plan").starts, 1);
    assert_int_equal(fake_look(w, "dns-1-plan").starts, 1);
}

static void observe_cause(struct world *w, const char *step, const char *cause)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    (void)snprintf(fake_find(&w->engine, step)->seen.cause, 256, "%s", cause);
    (void)pthread_mutex_unlock(&w->engine.lock);
    df_control_notify(w->s.control, step);
}

static void what_was_in_the_way_of_a_pod_is_not_said_when_it_is_over(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    (void)await_start(w, "net-1-plan");
    observe_cause(w, "net-1-plan", "no node takes the pod");
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "no node takes the pod");
    observe_cause(w, "net-1-plan", "");
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "");
}

/* Each write before a start would be one that wakes whoever follows the step. */
static void a_start_that_is_refused_is_tried_again_without_another_write(void **state)
{
    struct world *w = *state;
    w->engine.create_error = (struct df_err){.cls = DF_ERR_RETRY, .message = "exceeded quota"};
    begin(w, AUTO);
    await_creates(w, "net-1-plan", 2);
    DF_FREE char *first =
        value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.resourceVersion");
    await_creates(w, "net-1-plan", 4);
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.resourceVersion", first);
}

#define IN_PODS(fn) cmocka_unit_test_setup_teardown(fn, pods_open, world_teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        IN_PODS(a_step_that_somebody_else_ended_ends_with_its_pod_and_says_by_what),
        IN_PODS(a_report_that_comes_while_the_engine_is_asked_is_kept),
        IN_PODS(a_claim_that_comes_while_the_engine_is_asked_is_kept),
        IN_PODS(what_an_interrupted_runner_left_behind_is_explained_as_well),
        IN_PODS(steps_in_pods_live_on_when_the_spawner_stops),
        IN_PODS(what_was_in_the_way_of_a_pod_is_not_said_when_it_is_over),
        IN_PODS(a_start_that_is_refused_is_tried_again_without_another_write),
        IN_PODS(a_cluster_that_cannot_be_watched_keeps_no_step_from_its_end),
    };
    return cmocka_run_group_tests_name("control_pods", tests, make_keys, free_keys);
}
