#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/state_command.h"
#include "tests/unit/model_words.h"

static cJSON *run_with(const char *spec)
{
    cJSON *run = json("{'metadata':{'name':'net-1'}}");
    DF_FREE char *text = df_strf("{'executorRef':{'name':'net'},%s}", spec);
    assert_int_equal(df_json_add(run, "spec", json(text), NULL), 0);
    return run;
}

static void commands_on_the_state_are_admitted_as_the_tool_takes_them(void **state)
{
    (void)state;
    static const char *const good[] = {
        "'action':'state','command':['mv','a.b','a.c']",
        "'action':'state','command':['mv','-dry-run','a.b','module.x[0].a.c']",
        "'action':'state','command':['rm','a.b']",
        "'action':'state','command':['rm','-dry-run','a.b','a.c']",
        "'action':'state','command':['import','a.b','some id/with:all']",
        "'action':'state','command':['force-unlock','3f']",
        "'action':'state','command':['push-errored','3f']",
        "'action':'dry-run'",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++) {
        DF_JSON cJSON *run = run_with(good[i]);
        assert_admitted(DF_KIND_RUN, run, good[i]);
    }
}

static void other_commands_on_the_state_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *says;
    } bad[] = {
        {"'action':'state'", "spec.command: is required for the action state"},
        {"'action':'destroy','command':['rm','a.b']", "spec.command: is for the action state"},
        {"'action':'state','command':['push','x']",
         "mv, rm, import, force-unlock, push-errored or migrate"},
        {"'action':'state','command':['mv','a.b']", "mv takes SRC DST"},
        {"'action':'state','command':['mv','a','b','c']", "mv takes SRC DST"},
        {"'action':'state','command':['mv','-dry-run','a.b']", "mv takes SRC DST"},
        {"'action':'state','command':['rm']", "rm takes ADDRESS..."},
        {"'action':'state','command':['rm','-dry-run']", "rm takes ADDRESS..."},
        {"'action':'state','command':['import','a.b']", "import takes ADDRESS ID"},
        {"'action':'state','command':['import','-dry-run','a.b']", "must not begin with -"},
        {"'action':'state','command':['rm','-state=x']", "spec.command[1]"},
        {"'action':'state','command':['mv','a.b','-lock=false']", "must not begin with -"},
        {"'action':'state','command':['force-unlock','-force']", "must not begin with -"},
        {"'action':'state','command':['force-unlock']", "force-unlock takes ID"},
        {"'action':'state','command':[]", "spec.command"},
        {"'action':'state','command':'rm a.b'", "spec.command"},
        {"'action':'state','command':['rm',7]", "spec.command"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_JSON cJSON *run = run_with(bad[i].spec);
        assert_refused(DF_KIND_RUN, run, bad[i].spec, bad[i].says);
    }
}

static void only_a_state_that_is_kept_elsewhere_is_unlocked_by_a_run(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *unlock = run_with("'action':'state','command':['force-unlock','3f']");
    DF_JSON cJSON *rm = run_with("'action':'state','command':['rm','a.b']");
    DF_JSON cJSON *managed = executor_with("'storage':{'type':'managed'}");
    DF_JSON cJSON *elsewhere = executor_with("'storage':{'type':'s3'}");
    assert_int_equal(df_state_command_fits(unlock, elsewhere, &err), 0);
    assert_int_equal(df_state_command_fits(rm, managed, &err), 0);
    assert_int_equal(df_state_command_fits(unlock, managed, &err), -1);
    assert_non_null(strstr(err.message, "dayfly state unlock net"));
}

static void only_admins_change_the_state(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *e = json("{'metadata':{'name':'net'},'status':{'state':'provisioned',"
                            "'status':'done'}}");
    assert_int_equal(df_executor_check_action(e, DF_ACTION_STATE, DF_ROLE_ADMIN, &err), 0);
    assert_int_equal(df_executor_check_action(e, DF_ACTION_STATE, DF_ROLE_WRITE, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
}

static cJSON *run_in_phase(const char *command, const char *phase)
{
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'net-1'},'spec':{'action':'state','command':%s},"
                "'status':{'phase':'%s','steps':[{'name':'state','taskAction':'net-1-state'}]}}",
                command, phase);
    return json(text);
}

static void an_import_counts_from_its_start_and_other_commands_change_no_executor(void **state)
{
    (void)state;
    static const struct {
        const char *command, *phase, *then;
        bool holds;
    } cases[] = {{"['import','a','b']", "Running", "provision", true},
                 {"['import','a','b']", "Failed", "provision", true},
                 {"['import','a','b']", "Succeeded", "provisioned", true},
                 {"['mv','a','b']", "Succeeded", "provision", false},
                 {"['rm','a']", "Failed", "provision", false}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = json("{'metadata':{'name':'net'},'status':{'state':'provision',"
                                "'status':'ready'}}");
        DF_JSON cJSON *run = run_in_phase(cases[i].command, cases[i].phase);
        assert_int_equal(df_executor_follow_run(e, run, &err), 0);
        assert_string_equal(df_json_str(e, "status.state"), cases[i].then);
        assert_int_equal(df_json_bool(e, "status.mayHoldResources", false), cases[i].holds);
        assert_string_equal(df_json_str(e, "status.lastRun.name"), "net-1");
        assert_null(df_json_at(e, "status.activeRun"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_on_the_state_are_admitted_as_the_tool_takes_them),
        cmocka_unit_test(other_commands_on_the_state_are_refused),
        cmocka_unit_test(only_a_state_that_is_kept_elsewhere_is_unlocked_by_a_run),
        cmocka_unit_test(only_admins_change_the_state),
        cmocka_unit_test(an_import_counts_from_its_start_and_other_commands_change_no_executor),
    };
    return cmocka_run_group_tests_name("state_command", tests, NULL, NULL);
}
