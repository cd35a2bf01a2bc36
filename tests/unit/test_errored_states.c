/* Errored states in the status of an executor, and which runs they keep from starting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/errored_states.h"
#include "spawner/model/model.h"
#include "tests/unit/json_words.h"

#define AT "2026-11-26T03:14:15.000000Z"
#define KEPT "'erroredStates':[{'step':'3f','run':'net-2','at':'" AT "'}]"
static const char keeps_one[] = "{'metadata':{'name':'net'},'status':{'state':'provisioned',"
                                "'status':'error'," KEPT "}}";
static const char keeps_none[] = "{'metadata':{'name':'net'},'status':{'state':'provisioned',"
                                 "'status':'error'}}";

static void what_would_work_on_the_old_state_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        bool may;
    } rows[] = {{"{'spec':{'action':'provision'}}", false},
                {"{'spec':{'action':'destroy'}}", false},
                {"{'spec':{'action':'state','command':['mv','a.b','a.c']}}", false},
                {"{'spec':{'action':'state','command':['rm','a.b']}}", false},
                {"{'spec':{'action':'state','command':['rollback','3']}}", false},
                {"{'spec':{'action':'state','command':['migrate']}}", false},
                {"{'spec':{'action':'dry-run'}}", true},
                {"{'spec':{'action':'state','command':['import','a.b','1']}}", true},
                {"{'spec':{'action':'state','command':['force-unlock','3f']}}", true},
                {"{'spec':{'action':'state','command':['push-errored','3f']}}", true},
                {"{'spec':{'action':'state','command':['history']}}", true}};
    DF_JSON cJSON *one = json(keeps_one), *none = json(keeps_none);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *run = json(rows[i].run);
        struct df_err err = {0};
        assert_int_equal(df_errored_check_run(none, run, &err), 0);
        assert_int_equal(df_errored_check_run(one, run, &err), rows[i].may ? 0 : -1);
        if (!rows[i].may)
            assert_string_equal(err.reason, "ErroredStatePending");
    }
}

static void the_refusal_names_executor_run_time_and_both_ways_out(void **state)
{
    (void)state;
    static const char *const parts[] = {"executor net ", "run net-2 ", AT,
                                        "`dayfly state push-errored net`",
                                        "`dayfly state discard-errored net`"};
    DF_JSON cJSON *executor = json(keeps_one);
    struct df_err err = {0};
    assert_int_equal(df_errored_check(executor, &err), -1);
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++)
        assert_non_null(strstr(err.message, parts[i]));
}

static void a_step_whose_run_is_forgotten_is_named_itself(void **state)
{
    (void)state;
    DF_JSON cJSON *executor = json("{'status':{'erroredStates':[{'step':'3f'}]}}");
    char words[256];
    df_errored_words(executor, words, sizeof(words));
    assert_string_equal(words, "step 3f could not store its state (nobody knows when)");
    assert_false(df_errored_is_of(executor, "net-2"));
    df_errored_words(NULL, words, sizeof(words));
    assert_string_equal(words, "");
}

static void an_entry_keeps_its_time_until_its_state_is_gone(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *executor = json(keeps_one), *nothing = cJSON_CreateArray();
    DF_JSON cJSON *both = json("[{'step':'4a','run':'net-9','at':'later'},"
                               "{'step':'3f','run':'net-2','at':'later'}]");
    assert_int_equal(df_errored_set(executor, both, &err), 0);
    const cJSON *list = df_json_at(executor, "status.erroredStates");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(list, 0), "at"), "later");
    assert_string_equal(df_json_str(cJSON_GetArrayItem(list, 1), "at"), AT);
    assert_true(df_errored_is_of(executor, "net-9"));
    assert_int_equal(df_errored_set(executor, nothing, &err), 0);
    assert_false(cJSON_HasObjectItem(df_json_at(executor, "status"), "erroredStates"));
    assert_false(df_errored_is_kept(executor));
}

static void what_is_refused_is_not_offered(void **state)
{
    (void)state;
    static const char *const expected[] = {"dryrun", "edit"};
    DF_JSON cJSON *executor = json(keeps_one);
    const char *words[9];
    df_executor_actions(executor, DF_VERBS_ADMIN, words);
    for (size_t i = 0; i < DF_ARRAY_SIZE(expected); i++)
        assert_string_equal(words[i], expected[i]);
    assert_null(words[DF_ARRAY_SIZE(expected)]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_would_work_on_the_old_state_is_refused),
        cmocka_unit_test(the_refusal_names_executor_run_time_and_both_ways_out),
        cmocka_unit_test(a_step_whose_run_is_forgotten_is_named_itself),
        cmocka_unit_test(an_entry_keeps_its_time_until_its_state_is_gone),
        cmocka_unit_test(what_is_refused_is_not_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
