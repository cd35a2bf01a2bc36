#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/run.h"
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
        "'action':'state','command':['history']",
        "'action':'state','command':['rollback','-3sL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY']",
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
         "mv, rm, import, force-unlock, push-errored, migrate, history or rollback"},
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
        {"'action':'state','command':['history','3f']", "history takes no words"},
        {"'action':'state','command':['rollback']", "rollback takes VERSION"},
        {"'action':'state','command':['rollback','3f','4f']", "rollback takes VERSION"},
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

static void versions_are_listed_and_rolled_back_by_a_run_in_buckets_alone(void **state)
{
    (void)state;
    static const struct {
        const char *storage, *reason; /* NULL: it fits */
        const char *says;
    } rows[] = {
        {"'storage':{'type':'s3'}", NULL, NULL},
        {"'storage':{'type':'gcs'}", NULL, NULL},
        {"'storage':{'type':'managed'}", "InvalidDocument", "`dayfly state rollback net VERSION`"},
        {"'variables':{}", "InvalidDocument", "`dayfly state list net`"},
        {"'storage':{'type':'azurerm'}", "StateElsewhere", "azurerm storage"},
        {"'storage':{'type':'local'}", "StateElsewhere", "local storage"},
        {"'storage':{'type':'module'}", "StateElsewhere", "module storage"},
    };
    DF_JSON cJSON *list = run_with("'action':'state','command':['history']");
    DF_JSON cJSON *back = run_with("'action':'state','command':['rollback','3f']");
    for (size_t i = 0; i < 2 * DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = executor_with(rows[i / 2].storage);
        int result = df_state_command_fits(i % 2 ? back : list, e, &err);
        assert_int_equal(result, rows[i / 2].reason ? -1 : 0);
        assert_string_equal(err.reason, rows[i / 2].reason ? rows[i / 2].reason : "");
        if (rows[i / 2].says && !strstr(err.message, rows[i / 2].says))
            fail_msg("%s: %s", rows[i / 2].storage, err.message);
    }
}

/* Also if a destroy ended between the request and the start. */
static void a_destroyed_executor_is_not_rolled_back(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *e = json("{'metadata':{'name':'net'},'spec':{'storage':{'type':'s3'}},"
                            "'status':{'state':'destroyed','status':'done'}}");
    DF_JSON cJSON *run = json("{'metadata':{'name':'net-2'},'spec':{'action':'state',"
                              "'command':['rollback','3f'],'snapshot':{'storage':{'type':'s3'}}},"
                              "'status':{'phase':'Pending'}}");
    DF_JSON cJSON *list = json("{'metadata':{'name':'net-2'},'spec':{'action':'state',"
                               "'command':['history'],'snapshot':{'storage':{'type':'s3'}}},"
                               "'status':{'phase':'Pending'}}");
    assert_int_equal(df_state_command_fits(run, e, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_string_equal(err.reason, "WrongState");
    const struct df_run_view view = {.run = run, .executor = e, .is_first = true};
    const struct df_run_verdict v = df_run_next(&view, 0);
    assert_int_equal(v.next, DF_RUN_FINISH);
    assert_string_equal(v.phase, "Failed");
    assert_string_equal(v.reason, "WrongState");
    const struct df_run_view other = {.run = list, .executor = e, .is_first = true};
    assert_int_equal(df_run_next(&other, 0).next, DF_RUN_STEP);
}

static void only_admins_change_the_state(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *e = json("{'metadata':{'name':'net'},'status':{'state':'provisioned',"
                            "'status':'done'}}");
    assert_int_equal(df_executor_check_action(e, DF_ACTION_STATE, DF_VERBS_ADMIN, &err), 0);
    assert_int_equal(df_executor_check_action(e, DF_ACTION_STATE, DF_VERBS_WRITE, &err), -1);
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

static void
an_import_or_rollback_counts_from_its_start_and_other_commands_change_no_executor(void **state)
{
    (void)state;
    static const struct {
        const char *command, *phase, *then;
        bool holds;
    } cases[] = {{"['import','a','b']", "Running", "provision", true},
                 {"['import','a','b']", "Failed", "provision", true},
                 {"['import','a','b']", "Succeeded", "provisioned", true},
                 {"['mv','a','b']", "Succeeded", "provision", false},
                 {"['rm','a']", "Failed", "provision", false},
                 {"['rollback','3f']", "Succeeded", "provisioned", true},
                 {"['history']", "Succeeded", "provision", false}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = json("{'metadata':{'name':'net'},'status':{'state':'provision',"
                                "'status':'ready'}}");
        DF_JSON cJSON *run = run_in_phase(cases[i].command, cases[i].phase);
        assert_int_equal(df_executor_follow_run(e, run, false, &err), 0);
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
        cmocka_unit_test(versions_are_listed_and_rolled_back_by_a_run_in_buckets_alone),
        cmocka_unit_test(a_destroyed_executor_is_not_rolled_back),
        cmocka_unit_test(only_admins_change_the_state),
        cmocka_unit_test(
            an_import_or_rollback_counts_from_its_start_and_other_commands_change_no_executor),
    };
    return cmocka_run_group_tests_name("state_command", tests, NULL, NULL);
}
