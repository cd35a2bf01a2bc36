/* The standby runners that a class keeps: how many there are, which go, and which step takes
 * one. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/standby_world.h"

/* ---- how many ---- */

static void a_class_keeps_as_many_runners_as_it_says(void **state)
{
    struct world *w = *state;
    leave_over(w);
    start_with_class(w, "{'small':{'standby':{'min':2,'max':3}},'other':{'limit':2}}");
    await_removed(w, LEFT_OVER);
    assert_int_equal(jobs_for(w, ""), 2);
}

static void classes_of_one_form_keep_the_runners_of_all(void **state)
{
    struct world *w = *state;
    leave_over(w);
    start_with_class(w, "{'small':{'standby':{'min':1}},'other':{'standby':{'min':2}}}");
    await_removed(w, LEFT_OVER);
    assert_int_equal(jobs_for(w, ""), 3);
}

static void classes_of_two_forms_have_runners_of_both(void **state)
{
    struct world *w = *state;
    leave_over(w);
    start_with_class(w, "{'small':{'standby':{'min':1}},"
                        "'fast':{'standby':{'min':1},'placement':{'nodeSelector':{'disk':'x'}}}}");
    await_removed(w, LEFT_OVER);
    assert_int_equal(jobs_for(w, ""), 2);
    assert_string_not_equal(await_job(w, "", 1).form.digest, await_job(w, "", 2).form.digest);
}

static void await_waiting(struct world *w, int64_t number)
{
    while (df_slots_waiting(&w->s.control->slots, "small") < number)
        (void)sched_yield();
}

/* For one step the class has room, and five wait: each of them takes the runners that are free, one
 * after the other, and gives them back. */
static void a_class_has_no_more_runners_than_it_says(void **state)
{
    struct world *w = *state;
    start_with_class(w, "{'small':{'limit':1,'standby':{'min':1,'max':3}}}");
    run_in(w, await_runner(w, "", 1).id);
    lock(w);
    cluster.held_request = 4; /* the third one that is free, after that of the plan */
    unlock(w);
    for (int i = 0; i < 5; i++) {
        DF_FREE char *name = df_strf("e%d", i);
        make_executor(w, name, "'class':'small'");
        run(w, name, AUTO);
    }
    await_held(w);
    await_waiting(w, 5);
    release(w);
    await_pool(w);
    assert_int_equal(jobs_for(w, ""), 4);
}

/* The list is full, and its last runner is one that nobody wants. */
static void in_a_full_list_a_runner_is_made_when_another_one_has_gone(void **state)
{
    struct world *w = *state;
    fill_list(w, DF_LIMIT_STANDBY - 1);
    leave_over(w);
    start_with_class(w, KEEPS_ONE);
    (void)await_job(w, "", 1);
    assert_true(is_removed(w, LEFT_OVER));
    (void)await_runner(w, "", 1);
}

static void a_step_of_the_class_takes_a_runner_and_another_one_comes(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_offer(w, j.id);
    assert_string_equal(plan.name, PLAN);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
    struct standby_job next = await_runner(w, "", 2);
    finish_plan(&plan, j.id, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    await_removed(w, j.id);
    assert_false(is_known(w, j.id));
    assert_over(w, j.id);
    assert_false(is_removed(w, next.id));
}

/* The machine is for the step in its first second. */
static void the_next_runner_is_not_made_at_once(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    stop_clock();
    run(w, "net", ASKING);
    (void)claim_offer(w, j.id);
    await_pool(w);
    assert_int_equal(jobs_for(w, ""), 1);
    skip_seconds(w, 1);
    (void)await_runner(w, "", 2);
}

static void a_step_with_a_placement_of_its_own_does_not_get_the_runner_of_its_class(void **state)
{
    struct world *w = *state;
    w->config.classes = json(KEEPS_ONE);
    make_executor(w, "net", "'class':'small','placement':{'nodeSelector':{'disk':'fast'}}");
    start(w);
    struct standby_job j = await_runner(w, "", 1);
    run(w, "net", ASKING);
    struct runner plan = claim_own(w, PLAN);
    finish_plan(&plan, PLAN, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_false(is_removed(w, j.id));
    assert_int_equal(jobs_for(w, ""), 1);
}

/* The pod of the runner would end with the plan. */
static void a_plan_that_keeps_its_pod_for_its_apply_does_not_get_a_runner(void **state)
{
    struct world *w = *state;
    start_with_class(w, "{'small':{'standby':{'min':1},'placement':{'podPerStep':false}}}");
    (void)await_runner(w, "", 1);
    run(w, "net", AUTO);
    (void)claim_own(w, PLAN);
}

/* The runner of its class was made meanwhile. */
static void a_step_whose_first_pod_died_gets_a_job_of_its_own_again(void **state)
{
    struct world *w = *state;
    cluster.held_request = 1;
    start_with_class(w, KEEPS_ONE);
    await_held(w);
    run(w, "net", ASKING);
    await_ref(w, PLAN);
    release(w);
    (void)await_runner(w, "", 1);
    end_processes(w, PLAN, 137, "somebody deleted the pod");
    await_creates(w, PLAN, 2);
    assert_string_equal(claim_own(w, PLAN).name, PLAN);
}

/* Its pod is there already. */
static void an_apply_takes_a_runner_of_its_class_and_gets_none_ahead(void **state)
{
    struct world *w = *state;
    start_with_class(w, "{'small':{'standby':{'min':2,'max':2}}}");
    (void)await_runner(w, "", 2);
    run(w, "net", AUTO);
    DF_FREE char *id = await_host(w, PLAN);
    struct runner plan = claim_offer(w, id);
    finish_plan(&plan, id, "net-1");
    DF_FREE char *other = await_host(w, APPLY);
    struct runner apply = claim_offer(w, other);
    end_apply(w, &apply, other);
    assert_int_equal(jobs_for(w, "net-1"), 0);
}

/* ---- which go ---- */

/* Two that an earlier configuration kept, and nobody does now. */
static void the_surplus_of_a_class_goes_later(void **state)
{
    struct world *w = *state;
    leave_job(w, "standby-idle", "");
    leave_over(w);
    start_with_class(w, "{'small':{'standby':{'min':0,'max':1}}}");
    await_removed(w, LEFT_OVER);
    assert_false(is_removed(w, "standby-idle"));
    skip_seconds(w, 31);
    await_removed(w, "standby-idle");
}

static void a_runner_that_never_comes_is_replaced(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    stop_clock();
    skip_seconds(w, 110);
    await_pool(w);
    assert_false(is_removed(w, j.id));
    skip_seconds(w, 11);
    await_removed(w, j.id);
    assert_over(w, j.id);
    (void)await_runner(w, "", 2);
}

static bool is_leaving(void *arg)
{
    (void)arg;
    return true;
}

/* Asks, and goes away without a step. */
static void ask_once(struct world *w, const char *id)
{
    DF_JSON cJSON *body = json(CLAIM_B);
    DF_FREE char *token = token_of_pod(&pod_b, id);
    const struct df_standby_request r = {
        .id = id, .token = token, .body = body, .gone = is_leaving};
    cJSON *doc = NULL, *preparation = NULL;
    struct df_err err;
    assert_fails(df_runner_claim(&w->s, &r, &doc, &preparation, &err), err, DF_ERR_RETRY,
                 "NotDecidedYet");
}

static void a_runner_that_asks_no_more_is_replaced(void **state)
{
    struct world *w = *state;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    stop_clock();
    ask_once(w, j.id);
    skip_seconds(w, 30);
    await_pool(w);
    assert_false(is_removed(w, j.id));
    skip_seconds(w, 1);
    await_removed(w, j.id);
    (void)await_runner(w, "", 2);
}

/* A runner that asks again and again, in a thread of its own. */
struct asker {
    struct world *w;
    const char *id;
    struct df_err end;
};

static void *ask_on(void *arg)
{
    struct asker *a = arg;
    cJSON *doc = NULL;
    while (ask(a->w, a->id, &doc, &a->end) == 0 && !doc)
        continue;
    cJSON_Delete(doc);
    return NULL;
}

static bool is_heard_of(struct world *w, const char *id)
{
    static struct df_standby_view all[DF_LIMIT_STANDBY];
    size_t n = df_standby_list(w->s.standby, all);
    for (size_t i = 0; i < n; i++)
        if (df_streq(all[i].id, id))
            return all[i].has_asked;
    return true; /* it was, and is gone */
}

static void a_runner_that_waits_stays_until_its_deadline_is_near(void **state)
{
    struct world *w = *state;
    pthread_t thread;
    start_with_class(w, KEEPS_ONE);
    struct standby_job j = await_runner(w, "", 1);
    struct asker runner = {.w = w, .id = j.id};
    assert_int_equal(pthread_create(&thread, NULL, ask_on, &runner), 0);
    while (!is_heard_of(w, j.id))
        (void)sched_yield();
    await_pool(w);
    bool has_stayed = !is_removed(w, j.id);
    skip_seconds(w, DF_STANDBY_LIFE_SECONDS);
    (void)pthread_join(thread, NULL);
    assert_true(has_stayed);
    assert_string_equal(runner.end.reason, "StepOver");
    await_removed(w, j.id);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_class_keeps_as_many_runners_as_it_says),
        TEST(classes_of_one_form_keep_the_runners_of_all),
        TEST(classes_of_two_forms_have_runners_of_both),
        TEST(a_class_has_no_more_runners_than_it_says),
        TEST(in_a_full_list_a_runner_is_made_when_another_one_has_gone),
        TEST(a_step_of_the_class_takes_a_runner_and_another_one_comes),
        TEST(the_next_runner_is_not_made_at_once),
        TEST(a_step_with_a_placement_of_its_own_does_not_get_the_runner_of_its_class),
        TEST(a_plan_that_keeps_its_pod_for_its_apply_does_not_get_a_runner),
        TEST(a_step_whose_first_pod_died_gets_a_job_of_its_own_again),
        TEST(an_apply_takes_a_runner_of_its_class_and_gets_none_ahead),
        TEST(the_surplus_of_a_class_goes_later),
        TEST(a_runner_that_never_comes_is_replaced),
        TEST(a_runner_that_asks_no_more_is_replaced),
        TEST(a_runner_that_waits_stays_until_its_deadline_is_near),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
