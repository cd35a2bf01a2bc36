/* Recipes: what a run of each action is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/recipe.h"
#include "tests/unit/json_words.h"

static void every_action_has_a_recipe_whose_steps_refer_to_earlier_ones(void **state)
{
    (void)state;
    for (int action = DF_ACTION_PROVISION; action <= DF_ACTION_STATE; action++) {
        const struct df_recipe *r = df_recipe_for((enum df_action)action);
        assert_true(r->count > 0 && r->count <= DF_RECIPE_STEPS);
        assert_null(r->steps[0].plan_of);
        for (size_t i = 1; i < r->count; i++)
            assert_string_equal(r->steps[i].plan_of, r->steps[i - 1].name);
    }
}

/* What changes nothing needs no lock: it waits for nobody, and nobody for it. */
static void a_run_takes_a_turn_if_a_step_of_it_writes(void **state)
{
    (void)state;
    for (int action = DF_ACTION_PROVISION; action <= DF_ACTION_STATE; action++) {
        const struct df_recipe *r = df_recipe_for((enum df_action)action);
        bool writes = false;
        for (size_t i = 0; i < r->count; i++)
            writes |= r->steps[i].writes;
        assert_int_equal(r->takes_turn, writes);
    }
    DF_JSON cJSON *unknown = json("{'spec':{'action':'dance'}}");
    assert_true(df_run_takes_turn(unknown));
}

static bool is_step_action(const char *action)
{
    for (const char *const *known = df_step_actions; *known; known++)
        if (df_streq(*known, action))
            return true;
    return false;
}

static void a_step_has_exactly_the_actions_of_the_recipes(void **state)
{
    (void)state;
    for (const char *const *name = df_actions; *name; name++) {
        enum df_action action;
        assert_int_equal(df_action_parse(*name, &action, NULL), 0);
        const struct df_recipe *r = df_recipe_for(action);
        for (size_t at = 0; at < r->count; at++)
            assert_true(is_step_action(r->steps[at].action));
    }
    for (const char *const *action = df_step_actions; *action; action++)
        assert_string_equal(df_recipe_step_for(*action)->action, *action);
}

static void what_writes_carries_out_an_approved_plan_or_is_a_state_command(void **state)
{
    (void)state;
    static const struct {
        const char *action;
        bool writes, asks, has_plan;
    } cases[] = {
        {"plan", false, false, false},     {"plan-destroy", false, false, false},
        {"apply", true, true, true},       {"state", true, false, false},
        {"workflow", false, false, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const struct df_recipe_step *step = df_recipe_step_for(cases[i].action);
        assert_int_equal(step->writes, cases[i].writes);
        assert_int_equal(step->asks, cases[i].asks);
        assert_int_equal(step->plan_of != NULL, cases[i].has_plan);
    }
}

static void a_step_is_found_in_the_status_of_its_run_by_its_place_in_the_recipe(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json("{'spec':{'action':'destroy'},'status':{'steps':["
                              "{'name':'plan','taskAction':'net-1-plan'}]}}");
    assert_string_equal(df_json_str(df_run_step(run, 0), "taskAction"), "net-1-plan");
    assert_null(df_run_step(run, 1));
    DF_JSON cJSON *command = json("{'spec':{'action':'state'},'status':{'steps':["
                                  "{'name':'state','taskAction':'net-2-state'}]}}");
    assert_string_equal(df_json_str(df_run_step(command, 0), "taskAction"), "net-2-state");
    assert_null(df_run_step(command, 1));
}

static void a_run_may_have_written_once_a_step_that_writes_is_in_its_status(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        bool may_have_written;
    } rows[] = {
        {"{'spec':{'action':'provision'}}", false},
        {"{'spec':{'action':'provision'},'status':{'steps':[{'name':'plan'}]}}", false},
        {"{'spec':{'action':'provision'},'status':{'steps':[{'name':'plan'},{'name':'apply'}]}}",
         true},
        {"{'spec':{'action':'destroy'},'status':{'steps':[{'name':'apply'}]}}", true},
        {"{'spec':{'action':'state'},'status':{'steps':[{'name':'state'}]}}", true},
        {"{'spec':{'action':'state'},'status':{'steps':[]}}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run = json(rows[i].run);
        assert_int_equal(df_run_may_have_written(run), rows[i].may_have_written);
    }
}

static void a_run_of_an_unknown_action_has_no_steps(void **state)
{
    (void)state;
    static const char *const runs[] = {"{'spec':{'action':'dance'}}", "{'spec':{'action':7}}",
                                       "{'status':{'steps':[{'name':'plan','taskAction':'x'}]}}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(runs); i++) {
        DF_JSON cJSON *run = json(runs[i]);
        assert_int_equal(df_recipe_of(run)->count, 0);
        assert_null(df_run_step(run, 0));
        enum df_action action;
        struct df_err err = {0};
        assert_int_equal(df_run_action(run, &action, &err), -1);
        assert_string_equal(err.reason, "InvalidDocument");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_a_turn_if_a_step_of_it_writes),
        cmocka_unit_test(every_action_has_a_recipe_whose_steps_refer_to_earlier_ones),
        cmocka_unit_test(a_step_has_exactly_the_actions_of_the_recipes),
        cmocka_unit_test(what_writes_carries_out_an_approved_plan_or_is_a_state_command),
        cmocka_unit_test(a_step_is_found_in_the_status_of_its_run_by_its_place_in_the_recipe),
        cmocka_unit_test(a_run_may_have_written_once_a_step_that_writes_is_in_its_status),
        cmocka_unit_test(a_run_of_an_unknown_action_has_no_steps),
    };
    return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
