/*
 * A recipe of three steps, whose middle one only reads, in a real control loop: nothing but its row
 * says so. This program has a table of recipes of its own instead of spawner/model/recipes.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/recipe.h"
#include "tests/unit/control_loop.h"

const char *const df_step_actions[] = {"plan", "check", "apply", NULL};

const struct df_recipe df_recipes[] = {
    [DF_ACTION_PROVISION] = {.steps = {{.name = "plan", .action = "plan"},
                                       {.name = "check", .action = "check"},
                                       {.name = "apply",
                                        .action = "apply",
                                        .writes = true,
                                        .asks = true,
                                        .plan_of = "plan"}},
                             .count = 3,
                             .takes_turn = true,
                             .leads_to = "provisioned",
                             .reason = "Applied",
                             .idle_reason = "NoChanges",
                             .idle_message = "there was nothing to change"},
    [DF_ACTION_DRY_RUN] = {.count = 0},
    [DF_ACTION_DESTROY] = {.count = 0},
    [DF_ACTION_STATE] = {.count = 0},
};

static void play_check(struct world *w, const char *result)
{
    struct runner r = claim(w, "net-1-check");
    report(&r, result);
}

#define HOLDS "{'exitCode':0,'reason':'Checked','message':'3 rules hold'}"
#define BROKEN "{'exitCode':1,'reason':'CheckFailed','message':'a rule is broken'}"

static void three_steps_run_one_after_the_other(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    (void)await_start(w, "net-1-check");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-check", "spec.action", "check");
    play_check(w, HOLDS);
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "Applied");
    assert_value(w, DF_KIND_RUN, "net-1", "status.hasChanges", "true");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.state", "provisioned");
    DF_JSON cJSON *run = get(w, DF_KIND_RUN, "net-1");
    static const char *const names[] = {"plan", "check", "apply"};
    for (size_t at = 0; at < DF_ARRAY_SIZE(names); at++) {
        const cJSON *step = cJSON_GetArrayItem(df_json_at(run, "status.steps"), (int)at);
        assert_string_equal(df_json_str(step, "name"), names[at]);
        assert_string_equal(df_json_str(step, "phase"), "Succeeded");
    }
}

/* A person is asked when the last step before has ended, and the plan of the first is applied. */
static void the_step_that_asks_waits_for_the_one_before_it(void **state)
{
    struct world *w = *state;
    begin(w, ASKING);
    play_plan(w, "net-1", "net-1-plan");
    (void)await_start(w, "net-1-check");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "Running");
    play_check(w, HOLDS);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    play_apply(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-apply", "spec.planFrom", "net-1-plan");
}

static void a_step_in_the_middle_that_fails_is_the_end_of_the_run(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    play_check(w, BROKEN);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "CheckFailed");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

static void a_plan_without_changes_ends_a_run_of_three_steps(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    struct runner r = claim(w, "net-1-plan");
    report(&r, NOTHING_TO_DO);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "NoChanges");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-check"));
}

static void a_cancel_ends_the_step_in_the_middle(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    play_plan(w, "net-1", "net-1-plan");
    struct runner r = claim(w, "net-1-check");
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "ann", NULL, NULL, NULL),
                     0);
    await_cancel(w, "net-1-check");
    report(&r, "{'exitCode':1,'reason':'Canceled'}");
    end_processes(w, "net-1-check", 1, NULL);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-apply"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(three_steps_run_one_after_the_other),
        TEST(the_step_that_asks_waits_for_the_one_before_it),
        TEST(a_step_in_the_middle_that_fails_is_the_end_of_the_run),
        TEST(a_plan_without_changes_ends_a_run_of_three_steps),
        TEST(a_cancel_ends_the_step_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
