/* Standby runners ahead of applies: which run gets one, and which apply takes it. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/standby_world.h"

/* ---- who gets one ---- */

static void an_apply_is_claimed_by_the_runner_that_was_made_beside_its_plan(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "metadata.name", ""); /* there is none yet */
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_offer(w, j.id);
    assert_string_equal(apply.name, APPLY);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.hostUid", j.id);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.claimedBy.podUid", "pod-b");
    end_apply(w, &apply, j.id);
    assert_int_equal(fake_look(w, APPLY).creates, 0);
    assert_int_equal(jobs_made(w), 1);
    assert_over(w, j.id);
}

/* Another run without approval, whose apply gets a runner: with one worker that is free, every run
 * before it has been looked at, and the demands are served in their order. */
static void await_others(struct world *w)
{
    make_executor(w, "dns", "");
    run(w, "dns", AUTO);
    (void)claim_own(w, "dns-1-plan");
    (void)await_job(w, "dns-1", 1);
}

/* The plan of net is at work, and the pool has looked at its run. */
static void assert_nothing_ahead(struct world *w, const char *spec, const char *request)
{
    w->config.workers = 1;
    start_with_run(w, spec, request);
    (void)claim_own(w, PLAN);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    await_others(w);
    assert_int_equal(jobs_for(w, "net-1"), 0);
}

static void a_run_that_needs_an_approval_has_no_runner_ahead(void **state)
{
    assert_nothing_ahead(*state, "", ASKING);
}

static int set_automatic(cJSON *executor, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(df_json_object_at(executor, "spec"), "approval", "automatic", err);
}

/* It waits for somebody, even if later runs of its executor need nobody. */
static void a_run_that_waits_for_its_approval_has_no_runner_ahead(void **state)
{
    struct world *w = *state;
    w->config.workers = 1;
    start_with_run(w, "", ASKING);
    struct runner plan = claim_own(w, PLAN);
    finish_plan(&plan, PLAN, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_EXECUTOR, "net", set_automatic, NULL, NULL, NULL), 0);
    df_queue_wake(w->s.control->queue, DF_KIND_RUN, "net-1");
    await_others(w);
    assert_int_equal(jobs_for(w, "net-1"), 0);
}

static void a_run_whose_plan_keeps_its_pod_has_no_runner_ahead(void **state)
{
    assert_nothing_ahead(*state, "'placement':{'podPerStep':false}", AUTO);
}

static void a_run_that_applies_nothing_has_no_runner_ahead(void **state)
{
    assert_nothing_ahead(*state, "", "{'action':'dry-run','autoApprove':true}");
}

/* The limit of a class leaves room for others. */
static void a_run_without_room_for_one_step_more_has_no_runner_ahead(void **state)
{
    struct world *w = *state;
    w->config.classes = json("{'one':{'limit':1}}");
    assert_nothing_ahead(w, "'class':'one'", AUTO);
}

/* The runners that start ahead count: of four places three are those of plans. */
static void runs_get_no_more_runners_ahead_than_there_is_room(void **state)
{
    struct world *w = *state;
    w->config.workers = 1;
    w->config.limit_steps = 4;
    cluster.held_request = 1;
    make_executor(w, "dns", "");
    make_executor(w, "vpn", "");
    start_with_run(w, "", AUTO);
    run(w, "dns", AUTO);
    (void)claim_own(w, PLAN);
    (void)claim_own(w, "dns-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    await_value(w, DF_KIND_RUN, "dns-1", "status.phase", "Running");
    run(w, "vpn", ASKING);
    (void)claim_own(w, "vpn-1-plan"); /* both runs have been looked at */
    await_held(w);
    release(w);
    await_pool(w);
    assert_int_equal(jobs_for(w, "net-1") + jobs_for(w, "dns-1"), 1);
}

/* Of two places one is that of the plan of dns. */
static void a_run_that_waits_for_a_person_gives_its_place_to_one_that_waits_for_nobody(void **state)
{
    struct world *w = *state;
    w->config.kube_ahead_s = 600;
    w->config.limit_steps = 2;
    start_with_run(w, "", ASKING);
    struct runner plan = claim_own(w, PLAN);
    finish_plan(&plan, PLAN, "net-1");
    struct standby_job waits = await_runner(w, "net-1", 1);
    make_executor(w, "dns", "");
    run(w, "dns", AUTO);
    (void)claim_own(w, "dns-1-plan");
    (void)await_job(w, "dns-1", 1);
    await_removed(w, waits.id);
}

enum { NO_JOB = -1 }; /* a quota refuses it */

/* The pod of the plan of dns has waited for a node for so long, and a pass has seen why. */
static void run_without_a_node(struct world *w, bool lacks_room, int64_t seconds)
{
    const char *why = lacks_room ? "the nodes are full" : "no node fits";
    make_executor(w, "dns", "");
    run(w, "dns", ASKING);
    struct df_engine_observation *seen = &await_start(w, "dns-1-plan")->seen;
    lock(w);
    seen->phase = DF_ENGINE_PENDING;
    seen->lacks_room = lacks_room;
    seen->since_us = seconds == NO_JOB ? 0 : df_real_us() - seconds * 1000000;
    df_copy(seen->reason, sizeof(seen->reason), "Unschedulable");
    df_copy(seen->cause, sizeof(seen->cause), why);
    unlock(w);
    df_control_notify(w->s.control, "dns-1-plan");
    await_value(w, DF_KIND_RUN, "dns-1", "status.message", why);
}

static void a_runner_gives_its_place_to_a_step_for_which_the_nodes_are_too_full(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    run_without_a_node(w, true, 0);
    await_removed(w, j.id);
}

static void a_runner_gives_its_place_to_a_step_whose_job_a_quota_refuses(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    run_without_a_node(w, true, NO_JOB);
    await_removed(w, j.id);
}

/* Its place would not help. */
static void a_runner_stays_when_a_step_fits_no_node(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    run_without_a_node(w, false, 0);
    await_pool(w);
    assert_false(is_removed(w, j.id));
}

/* Its pod may be too large for any node: then the runners of others cannot help it. */
static void a_runner_stays_when_a_step_has_waited_for_room_for_a_minute(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    run_without_a_node(w, true, 61);
    await_pool(w);
    assert_false(is_removed(w, j.id));
}

static void a_plan_that_nobody_has_claimed_has_no_runner_ahead(void **state)
{
    struct world *w = *state;
    w->config.workers = 1;
    start_with_run(w, "", AUTO);
    (void)await_start(w, PLAN);
    await_others(w);
    assert_int_equal(jobs_for(w, "net-1"), 0);
}

static void without_apply_ahead_each_apply_has_a_job_of_its_own(void **state)
{
    struct world *w = *state;
    w->config.kube_apply_ahead = false;
    start_with_run(w, "", AUTO);
    struct runner plan = claim_own(w, PLAN);
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_own(w, APPLY);
    end_apply(w, &apply, APPLY);
    assert_int_equal(jobs_made(w), 0);
}

static int add_demand(struct world *w, int number)
{
    struct df_demand *d = calloc(1, sizeof(*d));
    struct df_err err = {0};
    (void)snprintf(d->run, sizeof(d->run), "r-%d", number);
    if (df_demand_add(w->s.control->standby_pool, d, &err) == 0)
        return 0;
    df_demand_free(d);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    return -1;
}

/* The leader has no list of runners: nothing is made for any of them. */
static void there_are_only_so_many_demands_and_one_of_each_run(void **state)
{
    struct world *w = *state;
    fail_lists(w, true);
    start(w);
    for (int i = 0; i < DF_LIMIT_STANDBY; i++)
        assert_int_equal(add_demand(w, i), 0);
    assert_int_equal(add_demand(w, 0), 0);
    assert_int_equal(add_demand(w, DF_LIMIT_STANDBY), -1);
    df_standby_forget(w->s.control, "r-0");
    assert_int_equal(add_demand(w, DF_LIMIT_STANDBY), 0);
}

/* ---- who wants it no more ---- */

static void a_runner_ends_when_there_is_nothing_to_apply(void **state)
{
    static const char *const results[] = {NOTHING_TO_DO, "{'exitCode':1,'reason':'PlanFailed'}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(results); i++) {
        struct world *w = *state;
        struct runner plan;
        struct standby_job j = begin_ahead(w, &plan);
        finish(&plan, PLAN, results[i]);
        await_removed(w, j.id);
        assert_over(w, j.id);
        await_settled(w);
        assert_int_equal(jobs_made(w), 1);
        new_world(state);
    }
}

static int set_deleted(cJSON *run, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(df_json_object_at(run, "metadata"), "deletionTimestamp",
                           "2026-11-21T20:17:40Z", err);
}

static void cancel_net(struct world *w)
{
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "tester", NULL, NULL, NULL), 0);
}

static void delete_net(struct world *w)
{
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_RUN, "net-1", set_deleted, NULL, NULL, NULL), 0);
}

static void remove_net(struct world *w)
{
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_RUN, "net-1", NULL, NULL), 0);
}

static void a_runner_ends_when_its_run_is_canceled_or_deleted(void **state)
{
    static void (*const ends[])(struct world * w) = {cancel_net, delete_net, remove_net};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        struct world *w = *state;
        struct runner plan;
        struct standby_job j = begin_ahead(w, &plan);
        ends[i](w);
        await_removed(w, j.id);
        assert_over(w, j.id);
        assert_int_equal(jobs_made(w), 1);
        new_world(state);
    }
}

static void a_run_that_is_over_while_its_runner_is_made_leaves_none(void **state)
{
    struct world *w = *state;
    cluster.held_request = 1;
    start_with_run(w, "", AUTO);
    struct runner plan = claim_own(w, PLAN);
    await_held(w);
    finish(&plan, PLAN, NOTHING_TO_DO);
    await_settled(w);
    release(w);
    await_removed(w, await_job(w, "net-1", 1).id);
    assert_int_equal(jobs_made(w), 1);
}

/* Its pass stands before the list of runners, and the run has been looked at meanwhile. */
static void a_runner_stays_for_the_apply_that_is_about_to_begin(void **state)
{
    struct world *w = *state;
    struct runner plan;
    w->config.workers = 2;
    struct standby_job j = begin_ahead(w, &plan);
    lock(w);
    cluster.held_form = APPLY;
    unlock(w);
    finish_plan(&plan, PLAN, "net-1");
    await_held(w);
    await_noted(w, APPLY);
    await_others(w);
    await_pool(w);
    assert_false(is_removed(w, j.id));
    release(w);
    assert_string_equal(claim_offer(w, j.id).name, APPLY);
}

/* ---- an apply that its runner does not get ---- */

static void an_apply_whose_runner_died_gets_a_job_of_its_own_and_starts_once(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    finish_plan(&plan, PLAN, "net-1");
    await_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.hostUid", j.id);
    end_processes(w, j.id, 137, "somebody deleted the pod");
    struct runner apply = claim_own(w, APPLY);
    end_apply(w, &apply, APPLY);
    assert_over(w, j.id);
    assert_true(is_removed(w, j.id));
    assert_int_equal(fake_look(w, APPLY).starts, 1);
    assert_int_equal(jobs_made(w), 1);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.systemFailures", "");
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.hostUid", "");
}

static void an_apply_that_needs_another_pod_does_not_get_the_runner(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    lock(w);
    cluster.image = "runner:2";
    unlock(w);
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_own(w, APPLY);
    await_removed(w, j.id);
    assert_over(w, j.id);
    end_apply(w, &apply, APPLY);
}

/* The document of the apply lacks the reference to its Job until it is claimed. */
static void a_runner_ends_when_its_apply_has_begun_in_another_pod(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    lock(w);
    cluster.image = "runner:2";
    unlock(w);
    stop_clock();
    finish_plan(&plan, PLAN, "net-1");
    (void)await_start(w, APPLY);
    await_removed(w, j.id);
    assert_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef", "");
}

/* The Job of the runner is not made yet, or it is there and the pool does not know it. */
static void an_apply_that_is_faster_than_its_runner_has_a_job_of_its_own(void **state)
{
    size_t *const holds[] = {&cluster.held_request, &cluster.held_answer};
    for (size_t i = 0; i < DF_ARRAY_SIZE(holds); i++) {
        struct world *w = *state;
        *holds[i] = 1;
        start_with_run(w, "", AUTO);
        struct runner plan = claim_own(w, PLAN);
        await_held(w);
        finish_plan(&plan, PLAN, "net-1");
        struct runner apply = claim_own(w, APPLY);
        release(w);
        await_removed(w, await_job(w, "net-1", 1).id);
        end_apply(w, &apply, APPLY);
        assert_int_equal(fake_look(w, APPLY).starts, 1);
        assert_int_equal(jobs_made(w), 1);
        new_world(state);
    }
}

/* ---- Jobs that the cluster refuses ---- */

static void while_a_job_is_refused_other_runs_get_their_runners(void **state)
{
    struct world *w = *state;
    w->config.workers = 1;
    cluster.refused = "net-1";
    start_with_run(w, "", AUTO);
    struct runner plan = claim_own(w, PLAN);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    await_others(w);
    assert_int_equal(jobs_for(w, "net-1"), 0);
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_own(w, APPLY);
    finish(&apply, APPLY, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

static void a_job_that_was_refused_is_made_later(void **state)
{
    struct world *w = *state;
    stop_clock();
    cluster.refused = "net-1";
    start_with_run(w, "", AUTO);
    (void)claim_own(w, PLAN);
    await_true(w, cluster.refusals == 1);
    await_pool(w);
    lock(w);
    int refusals = cluster.refusals;
    cluster.refused = NULL;
    unlock(w);
    assert_int_equal(refusals, 1); /* it is not tried again and again */
    skip_seconds(w, 5);
    (void)await_job(w, "net-1", 1);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(an_apply_is_claimed_by_the_runner_that_was_made_beside_its_plan),
        TEST(a_run_that_needs_an_approval_has_no_runner_ahead),
        TEST(a_run_that_waits_for_its_approval_has_no_runner_ahead),
        TEST(a_run_whose_plan_keeps_its_pod_has_no_runner_ahead),
        TEST(a_run_that_applies_nothing_has_no_runner_ahead),
        TEST(a_run_without_room_for_one_step_more_has_no_runner_ahead),
        TEST(runs_get_no_more_runners_ahead_than_there_is_room),
        TEST(a_run_that_waits_for_a_person_gives_its_place_to_one_that_waits_for_nobody),
        TEST(a_runner_gives_its_place_to_a_step_for_which_the_nodes_are_too_full),
        TEST(a_runner_gives_its_place_to_a_step_whose_job_a_quota_refuses),
        TEST(a_runner_stays_when_a_step_fits_no_node),
        TEST(a_runner_stays_when_a_step_has_waited_for_room_for_a_minute),
        TEST(a_plan_that_nobody_has_claimed_has_no_runner_ahead),
        TEST(without_apply_ahead_each_apply_has_a_job_of_its_own),
        TEST(there_are_only_so_many_demands_and_one_of_each_run),
        TEST(a_runner_ends_when_there_is_nothing_to_apply),
        TEST(a_runner_ends_when_its_run_is_canceled_or_deleted),
        TEST(a_run_that_is_over_while_its_runner_is_made_leaves_none),
        TEST(a_runner_stays_for_the_apply_that_is_about_to_begin),
        TEST(an_apply_whose_runner_died_gets_a_job_of_its_own_and_starts_once),
        TEST(an_apply_that_needs_another_pod_does_not_get_the_runner),
        TEST(a_runner_ends_when_its_apply_has_begun_in_another_pod),
        TEST(an_apply_that_is_faster_than_its_runner_has_a_job_of_its_own),
        TEST(while_a_job_is_refused_other_runs_get_their_runners),
        TEST(a_job_that_was_refused_is_made_later),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
