/* A step that was offered to a standby runner: writes that fail or wait, the end of the pod, and
 * what the sweep does when the step does not name the runner any more. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/standby_world.h"

/* ---- writes that fail or wait ---- */

/* The store of the world, whose updates of one kind do what the test says. */
static struct {
    struct df_store_ops ops;
    const struct df_store_ops *real;
    struct world *w;
    bool (*is_meant)(enum df_kind kind, const cJSON *doc);
    bool is_held;  /* such a write waits */
    bool fails;    /* ... fails */
    bool is_done;  /* ... and is durable all the same */
    size_t number; /* of those that were meant */
} writes;

static int meddled_update(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                          struct df_err *err)
{
    lock(writes.w);
    bool is_meant = writes.is_meant && writes.is_meant(kind, doc);
    writes.number += is_meant;
    stop_while(&writes.w->engine, is_meant && writes.is_held);
    bool fails = is_meant && writes.fails;
    bool is_done = !fails || writes.is_done;
    unlock(writes.w);
    int result = is_done ? writes.real->update(s, kind, doc, fails ? NULL : ret, err) : 0;
    return fails ? df_fail(err, DF_ERR_RETRY, "the store does not answer") : result;
}

/* Before the loop starts. */
static void meddle(struct world *w)
{
    memset(&writes, 0, sizeof(writes));
    writes.w = w;
    writes.real = w->s.store->ops;
    writes.ops = *writes.real;
    writes.ops.update = meddled_update;
    w->s.store->ops = &writes.ops;
}

static void meddle_with(bool (*is_meant)(enum df_kind kind, const cJSON *doc), bool is_held)
{
    lock(writes.w);
    writes.is_meant = is_meant;
    writes.is_held = is_held;
    writes.fails = !is_held;
    unlock(writes.w);
}

static void leave_writes_alone(void)
{
    lock(writes.w);
    writes.is_meant = NULL;
    writes.is_held = false;
    unlock(writes.w);
}

static bool is_apply_with(enum df_kind kind, const cJSON *doc, bool has_host)
{
    return kind == DF_KIND_TASK_ACTION && df_streq(df_json_str(doc, "metadata.name"), APPLY) &&
           df_standby_is(df_shared_pod_host(doc)) == has_host;
}

static bool is_offer(enum df_kind kind, const cJSON *doc)
{
    return is_apply_with(kind, doc, true);
}

static bool is_without_offer(enum df_kind kind, const cJSON *doc)
{
    return is_apply_with(kind, doc, false);
}

static bool names_a_runner(enum df_kind kind, const cJSON *doc)
{
    const cJSON *step;
    cJSON_ArrayForEach (step, df_json_at(doc, "status.steps"))
        if (df_json_at(step, "standbyRunner"))
            return kind == DF_KIND_RUN;
    return false;
}

static void a_runner_whose_offer_was_perhaps_written_gets_no_other_step(void **state)
{
    for (int is_done = 0; is_done < 2; is_done++) {
        struct world *w = *state;
        struct runner plan;
        meddle(w);
        struct standby_job j = begin_ahead(w, &plan);
        lock(w);
        cluster.refused = "net-1"; /* it gets no other runner */
        writes.is_done = is_done;
        unlock(w);
        meddle_with(is_offer, false);
        finish_plan(&plan, PLAN, "net-1");
        await_true(w, writes.number == 1);
        assert_over(w, j.id);
        leave_writes_alone();
        end_processes(w, j.id, 0, "it was over");
        df_control_notify(w->s.control, APPLY);
        struct runner apply = claim_own(w, APPLY);
        end_apply(w, &apply, APPLY);
        new_world(state);
    }
}

static void give_up(struct world *w, const char *id)
{
    lock(w);
    fake_find(&w->engine, id)->seen.gives_up = true;
    unlock(w);
    df_control_notify(w->s.control, id);
}

static void a_runner_that_claims_while_its_offer_is_taken_back_keeps_the_step(void **state)
{
    struct world *w = *state;
    struct runner plan;
    meddle(w);
    struct standby_job j = begin_ahead(w, &plan);
    finish_plan(&plan, PLAN, "net-1");
    await_value(w, DF_KIND_TASK_ACTION, APPLY, "status.engineRef.hostUid", j.id);
    meddle_with(is_without_offer, true);
    give_up(w, j.id);
    await_held(w);
    assert_false(is_removed(w, j.id));
    struct runner apply = claim_offer(w, j.id);
    leave_writes_alone();
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_apply(w, &apply, j.id);
    assert_int_equal(fake_look(w, APPLY).creates, 0);
}

static bool notes_apply(enum df_kind kind, const cJSON *doc)
{
    const cJSON *step;
    cJSON_ArrayForEach (step, df_json_at(doc, "status.steps"))
        if (df_streq(df_json_str(step, "taskAction"), APPLY))
            return kind == DF_KIND_RUN;
    return false;
}

/* The pass over its run, which would say so, stands. */
static void an_apply_that_has_its_runner_wants_no_other_one(void **state)
{
    struct world *w = *state;
    struct runner plan;
    meddle(w);
    struct standby_job j = begin_ahead(w, &plan);
    meddle_with(notes_apply, true);
    finish_plan(&plan, PLAN, "net-1");
    await_held(w);
    struct runner apply = claim_offer(w, j.id);
    await_pool(w);
    assert_int_equal(jobs_for(w, "net-1"), 1);
    leave_writes_alone();
    end_apply(w, &apply, j.id);
}

static bool is_offer_of_plan(enum df_kind kind, const cJSON *doc)
{
    return kind == DF_KIND_TASK_ACTION && df_streq(df_json_str(doc, "metadata.name"), PLAN) &&
           df_standby_is(df_shared_pod_host(doc));
}

static void a_runner_whose_offer_met_a_cancel_is_free_for_another_step(void **state)
{
    struct world *w = *state;
    meddle(w);
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    stop_clock(); /* no other runner comes */
    meddle_with(is_offer_of_plan, true);
    run(w, "net", ASKING);
    await_held(w);
    assert_int_equal(
        df_request_cancel_run(&w->s, "net-1", DF_VERBS_ADMIN, "tester", NULL, NULL, NULL), 0);
    free(await_some(w, DF_KIND_TASK_ACTION, PLAN, "spec.cancel"));
    leave_writes_alone();
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    run(w, "net", ASKING);
    assert_string_equal(claim_offer(w, j.id).name, "net-2-plan");
}

static bool is_queued_plan_of_dns(enum df_kind kind, const cJSON *doc)
{
    return kind == DF_KIND_TASK_ACTION && df_streq(df_task_reason(doc), "Queued") &&
           df_streq(df_json_str(doc, "metadata.name"), "dns-1-plan");
}

/* It has taken the runner, and its class has room for one step. */
static void a_step_that_must_wait_gives_its_runner_back_and_no_other_one_is_made(void **state)
{
    struct world *w = *state;
    meddle(w);
    start_with_class(w, "{'small':{'limit':1,'standby':{'min':1,'max':1}}}");
    struct standby_job first = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, first.id);
    struct standby_job j = await_runner(w, "", 2);
    meddle_with(is_queued_plan_of_dns, true);
    make_executor(w, "dns", "'class':'small'");
    run(w, "dns", ASKING);
    await_held(w);
    await_pool(w);
    assert_int_equal(jobs_for(w, ""), 2);
    leave_writes_alone();
    finish_plan(&plan, first.id, "net-1");
    assert_string_equal(claim_offer(w, j.id).name, "dns-1-plan");
}

/* ---- a step that leaves ---- */

static int set_ref(cJSON *task, void *arg, struct df_err *err)
{
    return df_json_set(df_json_object_at(task, "status"), "engineRef", ref_of("nothing", arg), err);
}

/* Both documents name it, and one of them has it. */
static void a_step_that_leaves_a_runner_does_not_end_the_step_of_another_one(void **state)
{
    struct world *w = *state;
    struct runner net;
    struct standby_job j = begin_ahead(w, &net);
    finish_plan(&net, PLAN, "net-1");
    struct runner apply = claim_offer(w, j.id);
    make_executor(w, "dns", "");
    run(w, "dns", ASKING);
    await_ref(w, "dns-1-plan");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, "dns-1-plan", set_ref, j.id, NULL, NULL),
        0);
    await_creates(w, "dns-1-plan", 2); /* it has left */
    struct runner plan = claim_own(w, "dns-1-plan");
    finish_plan(&plan, "dns-1-plan", "dns-1");
    await_true(w, fake_find(&w->engine, "dns-1-plan")->seen.phase == DF_ENGINE_ABSENT);
    assert_false(is_removed(w, j.id));
    finish(&apply, j.id, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
}

/* ---- the end of its pod ---- */

static void the_end_of_its_pod_wakes_a_step_before_its_claim(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run_in(w, j.id);
    stop_clock();
    end_processes(w, j.id, 137, "somebody deleted the pod");
    (void)claim_own(w, PLAN);
    await_removed(w, j.id);
}

static void the_end_of_its_pod_wakes_a_step_after_its_result(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, j.id);
    assert_int_equal(try_result(&plan, NOTHING_TO_DO, &err), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    stop_clock();
    assert_false(is_removed(w, j.id));
    end_processes(w, j.id, 0, "exited with code 0");
    await_removed(w, j.id);
    assert_false(is_known(w, j.id));
}

/* ---- the sweep ---- */

/* A step with a Job of its own that works. Returns its uid; the caller frees. */
static char *begin_another(struct world *w)
{
    make_executor(w, "dns", "'placement':{'nodeSelector':{'disk':'fast'}}");
    run(w, "dns", ASKING);
    (void)claim_own(w, "dns-1-plan");
    return value_of(w, DF_KIND_TASK_ACTION, "dns-1-plan", "metadata.uid");
}

/* A runner that believes to have this step. */
static void add_with_step(struct world *w, const char *id, const char *step_uid)
{
    static const struct df_standby_form form = {.digest = "another", .seconds = 100};
    DF_JSON cJSON *ref = ref_of(id, id);
    leave_job(w, id, "");
    lock(w);
    fake_find(&w->engine, id)->seen.phase = DF_ENGINE_RUNNING;
    unlock(w);
    assert_int_equal(df_standby_add(w->s.standby, ref, &form, 0, NULL), 0);
    df_standby_offer(w->s.standby, id, step_uid);
}

/* Its last one is a runner that the step has left: it is removed. */
static void await_sweep(struct world *w, const char *last, const char *another)
{
    add_with_step(w, last, another);
    skip_seconds(w, 61);
    await_removed(w, last);
}

static void the_sweep_ends_a_runner_that_its_step_has_left(void **state)
{
    struct world *w = *state;
    start(w);
    DF_FREE char *another = begin_another(w);
    await_sweep(w, "standby-1", another);
    assert_over(w, "standby-1");
    await_ref(w, "dns-1-plan");
}

static void the_sweep_comes_again(void **state)
{
    struct world *w = *state;
    start(w);
    DF_FREE char *another = begin_another(w);
    await_sweep(w, "standby-1", another);
    await_sweep(w, "standby-2", another);
}

static void the_sweep_leaves_a_runner_that_has_its_step(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, j.id);
    DF_FREE char *another = begin_another(w);
    await_sweep(w, "standby-last", another);
    assert_true(is_known(w, j.id));
    finish_plan(&plan, j.id, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
}

/* The pass over the step ends the pod. */
static void the_sweep_forgets_a_runner_whose_step_is_over_when_its_pod_has_ended(void **state)
{
    struct world *w = *state;
    start_with_run(w, "", ASKING);
    struct runner plan = claim_own(w, PLAN);
    finish(&plan, PLAN, NOTHING_TO_DO);
    await_settled(w);
    DF_FREE char *another = begin_another(w);
    add_with_step(w, "standby-old", plan.uid);
    await_sweep(w, "standby-1", another);
    assert_true(is_known(w, "standby-old"));
    end_processes(w, "standby-old", 0, "exited with code 0");
    await_sweep(w, "standby-2", another);
    assert_false(is_known(w, "standby-old"));
    assert_int_equal(fake_look(w, "standby-old").cancels, 0);
}

/* ---- a step that was taken away by force ---- */

/* Nothing durable but the TaskAction said where its process is. */
static void a_run_waits_for_the_pod_of_a_lost_apply_that_it_had_not_noted(void **state)
{
    struct world *w = *state;
    struct runner plan;
    meddle(w);
    struct standby_job j = begin_ahead(w, &plan);
    finish_plan(&plan, PLAN, "net-1");
    await_noted(w, APPLY);
    meddle_with(names_a_runner, false);
    (void)claim_offer(w, j.id);
    take_away(w, APPLY);
    leave_writes_alone();
    await_cancel(w, j.id);
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_lost(w, j.id);
}

/* Its run has asked the runner to end, which has its grace period. */
static void the_sweep_leaves_a_step_that_was_taken_away_to_its_run(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    (void)claim_offer(w, j.id);
    await_noted(w, j.id);
    DF_FREE char *another = begin_another(w);
    take_away(w, PLAN);
    await_sweep(w, "standby-1", another);
    assert_false(is_removed(w, j.id));
    assert_true(is_known(w, j.id));
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_lost(w, j.id);
    await_sweep(w, "standby-2", another);
    assert_false(is_known(w, j.id));
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_runner_whose_offer_was_perhaps_written_gets_no_other_step),
        TEST(a_runner_that_claims_while_its_offer_is_taken_back_keeps_the_step),
        TEST(an_apply_that_has_its_runner_wants_no_other_one),
        TEST(a_runner_whose_offer_met_a_cancel_is_free_for_another_step),
        TEST(a_step_that_must_wait_gives_its_runner_back_and_no_other_one_is_made),
        TEST(a_step_that_leaves_a_runner_does_not_end_the_step_of_another_one),
        TEST(the_end_of_its_pod_wakes_a_step_before_its_claim),
        TEST(the_end_of_its_pod_wakes_a_step_after_its_result),
        TEST(the_sweep_ends_a_runner_that_its_step_has_left),
        TEST(the_sweep_comes_again),
        TEST(the_sweep_leaves_a_runner_that_has_its_step),
        TEST(the_sweep_forgets_a_runner_whose_step_is_over_when_its_pod_has_ended),
        TEST(a_run_waits_for_the_pod_of_a_lost_apply_that_it_had_not_noted),
        TEST(the_sweep_leaves_a_step_that_was_taken_away_to_its_run),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
