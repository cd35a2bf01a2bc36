/* One executor for each state: lineages that steps report, and the runs that go on or end there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/control_loop.h"

#define BUCKET(name)                                                                               \
    "'storage':{'type':'s3','path':'p','config':{'bucket':'" name "','region':'r'}}"
#define DRY "{'action':'dry-run'}"
#define DESTROY "{'action':'destroy','autoApprove':true}"
#define MOVE                                                                                       \
    "{'action':'state','command':['migrate'],'moveTo':{'type':'s3','path':'new','config':"         \
    "{'bucket':'new','region':'r'}}}"

/* The result of a step; found: the lineage, or NULL. */
static void report_found(const struct runner *r, const char *result, const char *found)
{
    DF_FREE char *body =
        df_strf("{'exitCode':0,%s%s%s%s}", result, found ? ",'state':{'serial':3,'lineage':'" : "",
                found ? found : "", found ? "'}" : "");
    report(r, body);
}

static void play_plan_of(struct world *w, const char *run, const char *found)
{
    DF_FREE char *step = df_strf("%s-plan", run);
    struct runner r = claim(w, step);
    put_plan(&r, run);
    report_found(&r, "'reason':'Planned','hasChanges':true", found);
}

static void play_apply_of(struct world *w, const char *run, const char *made)
{
    DF_FREE char *step = df_strf("%s-apply", run);
    struct runner r = claim(w, step);
    DF_CLOSE int fd = -1;
    int64_t size;
    assert_int_equal(df_step_get_plan(&w->s, r.uid, r.step_token, &fd, &size, NULL), 0);
    report_found(&r, "'reason':'Applied','hasChanges':true", made);
}

static void play_idle_plan(struct world *w, const char *run, const char *found)
{
    DF_FREE char *step = df_strf("%s-plan", run);
    struct runner r = claim(w, step);
    report_found(&r, "'reason':'NoChanges','hasChanges':false", found);
}

/* Two executors with places of different spellings. */
static void begin_two(struct world *w)
{
    make_executor(w, "a", BUCKET("one"));
    make_executor(w, "b", BUCKET("two"));
    start(w);
}

/* a made the state of this lineage. */
static void provision_a(struct world *w, const char *lineage)
{
    run(w, "a", AUTO);
    play_plan_of(w, "a-1", NULL);
    play_apply_of(w, "a-1", lineage);
    await_value(w, DF_KIND_RUN, "a-1", "status.phase", "Succeeded");
}

static void assert_foreign(struct world *w, const char *run)
{
    await_value(w, DF_KIND_RUN, run, "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, run, "status.reason", "StateBelongsToAnother");
}

static void a_new_state_is_its_makers_with_the_end_of_the_apply(void **state)
{
    struct world *w = *state;
    begin_two(w);
    run(w, "a", AUTO);
    play_plan_of(w, "a-1", NULL);
    (void)await_start(w, "a-1-apply");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "");
    play_apply_of(w, "a-1", "L-1");
    await_value(w, DF_KIND_RUN, "a-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
}

static void a_failed_first_apply_makes_its_state_the_executors_too(void **state)
{
    struct world *w = *state;
    begin_two(w);
    run(w, "a", AUTO);
    play_plan_of(w, "a-1", NULL);
    struct runner r = claim(w, "a-1-apply");
    report(&r, "{'exitCode':2,'reason':'ApplyFailed','message':'no','state':{'serial':1,"
               "'lineage':'L-1'}}");
    await_value(w, DF_KIND_RUN, "a-1", "status.reason", "ApplyFailed");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
}

static void the_state_of_another_executor_ends_a_run_after_its_plan(void **state)
{
    static const char *const bodies[] = {AUTO, ASKING, DRY, DESTROY};
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        DF_FREE char *name = df_strf("b-%zu", i + 1);
        DF_FREE char *apply = df_strf("%s-apply", name);
        run(w, "b", bodies[i]);
        play_plan_of(w, name, "L-1");
        assert_foreign(w, name);
        assert_null(get(w, DF_KIND_TASK_ACTION, apply));
    }
    run(w, "b", AUTO);
    play_idle_plan(w, "b-5", "L-1");
    assert_foreign(w, "b-5");
    DF_FREE char *why = value_of(w, DF_KIND_RUN, "b-5", "status.message");
    assert_non_null(strstr(why, "(lineage \"L-1\") is that of executor a: "));
    assert_non_null(strstr(why, "`dayfly delete a --forget`"));
    assert_value(w, DF_KIND_EXECUTOR, "b", "status.stateLineage", "");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
}

static void of_two_plans_of_one_state_only_the_first_is_applied(void **state)
{
    struct world *w = *state;
    begin_two(w);
    run(w, "a", ASKING);
    run(w, "b", ASKING);
    play_plan_of(w, "a-1", "L-1");
    play_plan_of(w, "b-1", "L-1");
    await_value(w, DF_KIND_RUN, "a-1", "status.phase", "WaitingApproval");
    await_value(w, DF_KIND_RUN, "b-1", "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, "b-1", true, DF_VERBS_ADMIN, "t", NULL), 0);
    (void)await_start(w, "b-1-apply");
    assert_value(w, DF_KIND_EXECUTOR, "b", "status.stateLineage", "L-1");
    assert_int_equal(decide(w, "a-1", true, DF_VERBS_ADMIN, "t", NULL), 0);
    assert_foreign(w, "a-1");
    assert_null(get(w, DF_KIND_TASK_ACTION, "a-1-apply"));
    play_apply_of(w, "b-1", NULL);
    await_value(w, DF_KIND_RUN, "b-1", "status.phase", "Succeeded");
}

static void a_state_that_was_put_in_place_of_the_own_is_refused(void **state)
{
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "a", AUTO);
    play_plan_of(w, "a-2", "L-2");
    await_value(w, DF_KIND_RUN, "a-2", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "a-2", "status.reason", "StateRefused");
    assert_null(get(w, DF_KIND_TASK_ACTION, "a-2-apply"));
    run(w, "a", AUTO);
    play_plan_of(w, "a-3", "L-1");
    play_apply_of(w, "a-3", NULL);
    await_value(w, DF_KIND_RUN, "a-3", "status.phase", "Succeeded");
}

static void a_state_that_was_lost_may_be_made_anew(void **state)
{
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "a", AUTO);
    play_plan_of(w, "a-2", NULL);
    play_apply_of(w, "a-2", "L-2");
    await_value(w, DF_KIND_RUN, "a-2", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-2");
}

static void an_existing_state_is_adopted_by_a_provision_not_by_a_look(void **state)
{
    struct world *w = *state;
    begin_two(w);
    run(w, "a", DRY);
    play_plan_of(w, "a-1", "L-1");
    await_value(w, DF_KIND_RUN, "a-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "");
    run(w, "a", AUTO);
    play_idle_plan(w, "a-2", "L-1");
    await_value(w, DF_KIND_RUN, "a-2", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
}

static void an_executor_of_an_older_version_takes_its_lineage_from_any_plan(void **state)
{
    struct world *w = *state;
    begin_two(w);
    run(w, "a", AUTO);
    play_plan_of(w, "a-1", NULL);
    play_apply_of(w, "a-1", NULL);
    await_value(w, DF_KIND_RUN, "a-1", "status.phase", "Succeeded");
    run(w, "a", DRY);
    play_plan_of(w, "a-2", "L-1");
    await_value(w, DF_KIND_RUN, "a-2", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
}

static void a_destroyed_executor_leaves_its_place_to_others(void **state)
{
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "a", DESTROY);
    play_plan_of(w, "a-2", "L-1");
    play_apply_of(w, "a-2", NULL);
    await_value(w, DF_KIND_EXECUTOR, "a", "status.state", "destroyed");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "");
    run(w, "b", AUTO);
    play_plan_of(w, "b-1", "L-1");
    play_apply_of(w, "b-1", NULL);
    await_value(w, DF_KIND_RUN, "b-1", "status.phase", "Succeeded");
}

static void a_forgotten_executor_leaves_its_state_to_the_next(void **state)
{
    struct world *w = *state;
    const struct df_forget forget = {0};
    begin_two(w);
    provision_a(w, "L-1");
    await_settled(w);
    assert_int_equal(
        df_request_delete_executor(&w->s, "a", DF_VERBS_ADMIN, &forget, "tester", NULL), 0);
    run(w, "b", AUTO);
    play_idle_plan(w, "b-1", "L-1");
    await_value(w, DF_KIND_RUN, "b-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "b", "status.stateLineage", "L-1");
}

static void a_move_takes_the_lineage_along(void **state)
{
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "a", MOVE);
    struct runner r = claim(w, "a-2-state");
    report_found(&r, "'reason':'StateMoved','hasChanges':true", "L-1");
    await_value(w, DF_KIND_EXECUTOR, "a", "spec.storage.path", "new");
    assert_value(w, DF_KIND_EXECUTOR, "a", "status.stateLineage", "L-1");
    run(w, "b", DRY);
    play_plan_of(w, "b-1", "L-1");
    assert_foreign(w, "b-1");
}

static void a_move_of_the_state_of_another_changes_no_storage(void **state)
{
    struct world *w = *state;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "b", MOVE);
    struct runner r = claim(w, "b-1-state");
    report_found(&r, "'reason':'StateMoved','hasChanges':true", "L-1");
    assert_foreign(w, "b-1");
    assert_value(w, DF_KIND_EXECUTOR, "b", "spec.storage.path", "p");
}

static void a_runner_gets_the_lineages_that_its_command_must_find_or_not(void **state)
{
    struct world *w = *state;
    DF_SECRET_JSON cJSON *own = NULL, *first = NULL;
    begin_two(w);
    provision_a(w, "L-1");
    run(w, "a", "{'action':'state','command':['rm','x.y']}");
    struct fake_step *s = await_start(w, "a-2-state");
    assert_int_equal(try_claim(w, s, CLAIM_A, &own, NULL), 0);
    assert_string_equal(df_json_str(own, "stateLineage"), "L-1");
    assert_null(df_json_at(own, "othersLineages"));
    run(w, "b", "{'action':'state','command':['rm','x.y']}");
    s = await_start(w, "b-1-state");
    assert_int_equal(try_claim(w, s, CLAIM_A, &first, NULL), 0);
    assert_null(df_json_at(first, "stateLineage"));
    assert_string_equal(df_json_str(first, "othersLineages.L-1"), "a");
    struct runner r = runner_of(w, s, first);
    report_found(&r, "'reason':'StateChanged','hasChanges':true", "L-2");
    await_value(w, DF_KIND_RUN, "b-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_EXECUTOR, "b", "status.stateLineage", "L-2");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_new_state_is_its_makers_with_the_end_of_the_apply),
        TEST(a_failed_first_apply_makes_its_state_the_executors_too),
        TEST(the_state_of_another_executor_ends_a_run_after_its_plan),
        TEST(of_two_plans_of_one_state_only_the_first_is_applied),
        TEST(a_state_that_was_put_in_place_of_the_own_is_refused),
        TEST(a_state_that_was_lost_may_be_made_anew),
        TEST(an_existing_state_is_adopted_by_a_provision_not_by_a_look),
        TEST(an_executor_of_an_older_version_takes_its_lineage_from_any_plan),
        TEST(a_destroyed_executor_leaves_its_place_to_others),
        TEST(a_forgotten_executor_leaves_its_state_to_the_next),
        TEST(a_move_takes_the_lineage_along),
        TEST(a_move_of_the_state_of_another_changes_no_storage),
        TEST(a_runner_gets_the_lineages_that_its_command_must_find_or_not),
    };
    return cmocka_run_group_tests_name("lineage", tests, NULL, NULL);
}
