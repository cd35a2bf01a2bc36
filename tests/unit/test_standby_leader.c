/* Standby runners and the leader: what the next one takes over, and what one does when it begins
 * and ends. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/standby_world.h"

/* ---- what an earlier leader left ---- */

static void a_runner_of_a_class_is_taken_over_by_the_next_leader(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    leave_over(w);
    change_leader(w);
    await_removed(w, LEFT_OVER); /* nothing is taken before the list is complete */
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, j.id);
    assert_string_equal(plan.name, PLAN);
}

static void a_runner_of_an_apply_is_taken_over_by_the_next_leader(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    leave_over(w);
    change_leader(w);
    await_removed(w, LEFT_OVER);
    assert_false(is_removed(w, j.id));
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_offer(w, j.id);
    end_apply(w, &apply, j.id);
    assert_int_equal(jobs_for(w, "net-1"), 1);
}

/* It waits for minutes when the leader changes, and has not asked the new one. */
static void a_runner_that_waits_for_long_is_not_taken_for_one_that_never_came(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    set_age(w, j.id, DF_TIMEOUT_PENDING_SECONDS * INT64_C(2000));
    leave_over(w);
    change_leader(w);
    await_removed(w, LEFT_OVER);
    assert_false(is_removed(w, j.id));
    assert_int_equal(jobs_for(w, ""), 1);
}

static void a_runner_whose_deadline_is_near_is_replaced(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    set_age(w, j.id, DF_STANDBY_LIFE_SECONDS * INT64_C(1000));
    change_leader(w);
    await_removed(w, j.id);
    (void)await_runner(w, "", 2);
}

static int set_separate(cJSON *executor, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set(df_json_object_at(executor, "spec"), "separateApprover", cJSON_CreateTrue(),
                       err);
}

/* Its only worker has looked at net-1 before it has the list of runners. */
static void change_leader_without_list(struct world *w)
{
    fail_lists(w, true);
    change_leader(w);
    make_executor(w, "dns", "");
    run(w, "dns", ASKING);
    (void)claim_own(w, "dns-1-plan");
}

static void
a_runner_of_an_apply_that_needs_an_approval_now_is_removed_by_the_next_leader(void **state)
{
    struct world *w = *state;
    struct runner plan;
    w->config.workers = 1;
    struct standby_job j = begin_ahead(w, &plan);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_EXECUTOR, "net", set_separate, NULL, NULL, NULL), 0);
    change_leader_without_list(w);
    fail_lists(w, false);
    await_removed(w, j.id);
}

/* The engine has just begun, too, and no pass over the step gets to the runner. */
static void begin_blind(struct world *w)
{
    lock(w);
    w->engine.status_error = (struct df_err){.cls = DF_ERR_RETRY, .reason = "NotListedYet"};
    unlock(w);
    leave_over(w);
    change_leader(w);
    await_removed(w, LEFT_OVER);
    lock(w);
    w->engine.status_error = (struct df_err){0};
    unlock(w);
}

static void an_apply_that_works_in_its_runner_outlives_a_change_of_the_leader(void **state)
{
    struct world *w = *state;
    struct runner plan;
    struct standby_job j = begin_ahead(w, &plan);
    finish_plan(&plan, PLAN, "net-1");
    struct runner apply = claim_offer(w, j.id);
    begin_blind(w);
    assert_false(is_removed(w, j.id));
    end_apply(w, &apply, j.id);
    assert_int_equal(fake_look(w, APPLY).creates, 0);
}

static void a_step_that_works_for_long_in_a_runner_of_its_class_outlives_it_too(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, j.id);
    (void)await_runner(w, "", 2);
    set_age(w, j.id, DF_STANDBY_LIFE_SECONDS * INT64_C(1000));
    begin_blind(w);
    assert_false(is_removed(w, j.id));
    finish_plan(&plan, j.id, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
}

/* The offer is durable, and its runner hears of it from the next leader only. */
static void an_offer_that_its_runner_did_not_hear_is_made_again(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run_in(w, j.id);
    change_leader(w);
    assert_string_equal(claim_offer(w, j.id).name, PLAN);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
}

/* Its TaskAction is taken away while nobody leads: only the run says where it is. */
static struct standby_job lose_step(struct world *w)
{
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    (void)claim_offer(w, j.id);
    await_noted(w, j.id);
    end_leader(w);
    take_away(w, PLAN);
    return j;
}

/* Its runner has its grace period. */
static void a_lost_step_outlives_a_change_of_the_leader(void **state)
{
    struct world *w = *state;
    struct standby_job j = lose_step(w);
    begin_leader(w);
    await_cancel(w, j.id);
    skip_seconds(w, 200);
    await_pool(w);
    assert_false(is_removed(w, j.id));
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_lost(w, j.id);
}

static void a_leader_without_standby_runners_ends_a_lost_step_too(void **state)
{
    struct world *w = *state;
    struct standby_job j = lose_step(w);
    begin_plain_leader(w);
    await_cancel(w, j.id);
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    end_lost(w, j.id);
}

/* ---- the list ---- */

static void while_nobody_knows_what_there_is_no_runner_is_told_that_it_is_over(void **state)
{
    struct world *w = *state;
    struct df_err err;
    cJSON *doc = NULL;
    fail_lists(w, true);
    start_with_class(w, KEEPS_ONE);
    await_true(w, cluster.lists > 0);
    assert_fails(ask(w, "standby-old", &doc, &err), err, DF_ERR_RETRY, "NotListedYet");
    assert_int_equal(jobs_for(w, ""), 0);
    fail_lists(w, false);
    (void)await_job(w, "", 1);
    assert_over(w, "standby-old");
}

static void more_runners_than_the_list_has_room_for_do_not_stop_the_leader(void **state)
{
    struct world *w = *state;
    fill_list(w, DF_LIMIT_STANDBY);
    leave_over(w);
    start(w);
    while (!df_standby_is_open(w->s.standby))
        (void)sched_yield();
    assert_false(is_known(w, LEFT_OVER));
}

/* ---- the beginning and the end ---- */

static void without_standby_runners_a_runner_of_before_is_over(void **state)
{
    struct world *w = *state;
    job_runner.standbys = NULL;
    start(w);
    assert_null(w->s.control->standby_pool);
    assert_over(w, "standby-old");
}

static void a_class_that_has_no_valid_pod_is_named_at_the_start(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    w->config.classes = json("{'small':{'standby':{'min':1},'placement':{'podPerStep':'never'}}}");
    assert_int_equal(df_control_start(w->s.control, &err), -1);
    if (!strstr(err.message, "classes.small.standby: "))
        fail_msg("%s", err.message);
}

static void *stop(void *arg)
{
    df_control_stop(arg, false);
    return NULL;
}

static void a_leader_that_stops_waits_for_the_job_that_is_being_made(void **state)
{
    static struct df_standby_view all[DF_LIMIT_STANDBY];
    struct world *w = *state;
    pthread_t thread;
    cluster.held_request = 1;
    start_with_class(w, "{'small':{'standby':{'min':2,'max':2}}}");
    await_held(w);
    assert_int_equal(pthread_create(&thread, NULL, stop, w->s.control), 0);
    while (!atomic_load(&w->s.control->draining))
        (void)sched_yield();
    release(w);
    (void)pthread_join(thread, NULL);
    assert_int_equal(df_standby_list(w->s.standby, all), 1);
    assert_int_equal(jobs_made(w), 1);
    assert_false(is_removed(w, all[0].id)); /* the next leader has it */
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_runner_of_a_class_is_taken_over_by_the_next_leader),
        TEST(a_runner_of_an_apply_is_taken_over_by_the_next_leader),
        TEST(a_runner_that_waits_for_long_is_not_taken_for_one_that_never_came),
        TEST(a_runner_whose_deadline_is_near_is_replaced),
        TEST(a_runner_of_an_apply_that_needs_an_approval_now_is_removed_by_the_next_leader),
        TEST(an_apply_that_works_in_its_runner_outlives_a_change_of_the_leader),
        TEST(a_step_that_works_for_long_in_a_runner_of_its_class_outlives_it_too),
        TEST(an_offer_that_its_runner_did_not_hear_is_made_again),
        TEST(a_lost_step_outlives_a_change_of_the_leader),
        TEST(a_leader_without_standby_runners_ends_a_lost_step_too),
        TEST(while_nobody_knows_what_there_is_no_runner_is_told_that_it_is_over),
        TEST(more_runners_than_the_list_has_room_for_do_not_stop_the_leader),
        TEST(without_standby_runners_a_runner_of_before_is_over),
        TEST(a_class_that_has_no_valid_pod_is_named_at_the_start),
        TEST(a_leader_that_stops_waits_for_the_job_that_is_being_made),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
