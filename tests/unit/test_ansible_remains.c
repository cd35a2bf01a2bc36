/* What the engine `ansible` ends and removes in AWX: jobs, ephemeral credentials, and launches
 * whose answer was lost. Ids are those of kubernaut's cases. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/ansible/awx_poll.h"
#include "tests/unit/ansible_world.h"

/* ---- cancel and cleanup ---- */

/* Cleanup-1 */
static void a_job_is_canceled_once_and_as_often_as_one_likes(void **state)
{
    struct world *w = *state;
    start(w);
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    assert_true(awx_is(&w->awx, 42, "canceled"));
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0); /* 405 */
    awx_forget(&w->awx, "jobs", 42);
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0); /* 404 */
}

static void a_live_job_is_not_cleaned_up(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    plan_gitea(w);
    start(w);
    assert_failed(clean(w, &err), &err, DF_ERR_CONFLICT, "", "the AWX job of we-1 still lives");
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
}

/* UT-WE-015-034: the job's end is for cancel() */
static void a_cleanup_deletes_our_credentials_and_no_others(void **state)
{
    struct world *w = *state;
    int other = awx_keep(&w->awx, "credentials",
                         json("{'id':700,'organization':1,"
                              "'name':'kubernaut-ephemeral-gitea-repo-creds-we-1'}"));
    awx_set(&w->awx, "job_templates", 10, "credentials", json("[700]"));
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "successful");
    assert_false(observe(w).is_gone);
    assert_int_equal(awx_size(&w->awx, "credentials"), 2);
    assert_int_equal(clean(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    assert_true(awx_has(&w->awx, "credentials", other));
    assert_true(observe(w).is_gone);
    assert_int_equal(clean(w, NULL), 0); /* 404 */
    assert_int_equal(awx_count(&w->awx, "DELETE", "credentials/700/"), 0);
}

static void a_job_that_has_ended_needs_no_credentials_any_more(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "successful");
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    assert_int_equal(release(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
    assert_int_equal(clean(w, NULL), 0);
}

/* UT-WE-015-035: it is tried again */
static void a_credential_that_cannot_be_deleted_stops_no_other(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *ref = json("{'name':'awx-job-99','credentials':[42,55]}");
    (void)awx_keep(&w->awx, "jobs", json("{'id':99,'status':'failed'}"));
    (void)awx_keep(&w->awx, "credentials", json("{'id':42}"));
    (void)awx_keep(&w->awx, "credentials", json("{'id':55}"));
    w->step.ref = ref;
    awx_break(&w->awx, "DELETE", "credentials/42/", 500, NULL);
    assert_failed(clean(w, &err), &err, DF_ERR_RETRY, "", "AWX delete credential returned 500");
    assert_false(awx_has(&w->awx, "credentials", 55));
    assert_false(observe(w).is_gone);
    assert_int_equal(clean(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

/* UT-WE-015-036, Cleanup-2 */
static void a_step_without_credentials_has_none_to_delete(void **state)
{
    struct world *w = *state;
    start(w);
    awx_move(&w->awx, 42, "successful");
    assert_int_equal(clean(w, NULL), 0);
    be(w, "we-2", "uid-2");
    assert_int_equal(clean(w, NULL), 0);
    assert_true(observe(w).is_gone);
    assert_int_equal(awx_count(&w->awx, "DELETE", ""), 0);
}

static void a_step_that_was_never_asked_for_has_nothing(void **state)
{
    struct world *w = *state;
    w->step.was_created = false;
    assert_true(observe(w).is_gone);
    assert_int_equal(awx_count(&w->awx, NULL, ""), 0);
}

static void what_a_lost_launch_has_left_is_found_by_name_and_ended(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch");
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    assert_int_equal(clean(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
    assert_true(awx_is(&w->awx, 42, "canceled"));
    assert_true(observe(w).is_gone);
}

/* As after a cancel. */
static void
a_step_that_ends_before_its_launch_is_known_leaves_neither_job_nor_credential(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch");
    assert_int_equal(release(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
    assert_true(awx_is(&w->awx, 42, "canceled"));
}

/* AWX works on a launch that it has not answered, as behind a proxy that does not wait. */
static void what_a_launch_makes_after_the_end_of_its_step_is_ended_too(void **state)
{
    struct world *w = *state;
    struct df_err errors[2] = {0};
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, 504, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch returned 504");
    assert_failed(release(w, &errors[0]), &errors[0], DF_ERR_RETRY, "", "AWX may still work on");
    assert_failed(clean(w, &errors[1]), &errors[1], DF_ERR_RETRY, "", "AWX may still work on");
    assert_true(errors[0].retry_after_s > 0 && errors[0].retry_after_s <= 10);
    awx_launch_later(&w->awx, 10, "uid-1");
    assert_int_equal(release(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
    assert_true(awx_is(&w->awx, AWX_FIRST, "canceled"));
}

static void a_launch_that_comes_to_nothing_is_waited_for_once(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    awx_break(&w->awx, "POST", LAUNCH, 504, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch");
    assert_int_equal(release(w, NULL), -1);
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
    world_later(131);
    assert_int_equal(release(w, NULL), 0);
    assert_int_equal(awx_size(&w->awx, "credentials"), 0);
}

static void a_token_that_awx_refuses_does_not_hide_a_lost_launch(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    awx_break(&w->awx, "POST", LAUNCH, AWX_LOST, NULL);
    assert_no_start(w, DF_ERR_RETRY, "", "AWX launch");
    awx_set_away(&w->awx, 403);
    assert_failed(release(w, &err), &err, DF_ERR_USER, "NotAllowed", "AWX job template search");
    awx_set_away(&w->awx, 0);
    assert_int_equal(release(w, NULL), 0);
    assert_true(awx_is(&w->awx, AWX_FIRST, "canceled"));
}

static void a_lost_launch_of_a_template_that_is_gone_is_not_looked_for(void **state)
{
    struct world *w = *state;
    awx_forget(&w->awx, "job_templates", 10);
    assert_no_start(w, DF_ERR_USER, "InvalidStep", "test-template");
    assert_int_equal(release(w, NULL), 0);
}

static void a_step_that_ends_and_has_nothing_asks_nothing(void **state)
{
    struct world *w = *state;
    start(w);
    int asked = awx_count(&w->awx, NULL, "");
    assert_int_equal(release(w, NULL), 0);
    be(w, "we-2", "uid-2");
    w->step.was_created = false;
    assert_int_equal(release(w, NULL), 0);
    assert_int_equal(awx_count(&w->awx, NULL, ""), asked);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_canceled_once_and_as_often_as_one_likes),
        TEST(a_live_job_is_not_cleaned_up),
        TEST(a_cleanup_deletes_our_credentials_and_no_others),
        TEST(a_job_that_has_ended_needs_no_credentials_any_more),
        TEST(a_credential_that_cannot_be_deleted_stops_no_other),
        TEST(a_step_without_credentials_has_none_to_delete),
        TEST(a_step_that_was_never_asked_for_has_nothing),
        TEST(what_a_lost_launch_has_left_is_found_by_name_and_ended),
        TEST(a_step_that_ends_before_its_launch_is_known_leaves_neither_job_nor_credential),
        TEST(what_a_launch_makes_after_the_end_of_its_step_is_ended_too),
        TEST(a_launch_that_comes_to_nothing_is_waited_for_once),
        TEST(a_token_that_awx_refuses_does_not_hide_a_lost_launch),
        TEST(a_lost_launch_of_a_template_that_is_gone_is_not_looked_for),
        TEST(a_step_that_ends_and_has_nothing_asks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
