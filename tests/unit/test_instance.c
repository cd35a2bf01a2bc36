/* What an instance says of classes and workspaces, from the request of a run to its steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/model/instance.h"
#include "spawner/steps/step_document.h"
#include "tests/unit/control_loop.h"

#define DRY "{'action':'dry-run'}"

static void configure(struct world *w, const char *classes, const char *workspaces)
{
    w->config.classes = classes ? json(classes) : NULL;
    w->config.workspaces = workspaces ? json(workspaces) : NULL;
}

static int teardown_configured(void **state)
{
    struct world *w = *state;
    cJSON *classes = w->config.classes, *workspaces = w->config.workspaces;
    int result = world_teardown(state);
    cJSON_Delete(classes);
    cJSON_Delete(workspaces);
    return result;
}

/* ---- a workspace ---- */

static void a_workspace_gives_its_executor_what_that_does_not_say_itself(void **state)
{
    struct world *w = *state;
    configure(w, "{'large':{},'small':{}}",
              "{'net':{'class':'large','environment':[{'name':'A','value':'w'},"
              "{'name':'B','value':'w'}]}}");
    make_executor(w, "net", "'environment':[{'name':'B','value':'e'},{'name':'C','value':'e'}]");
    make_executor(w, "dns", "'environment':[{'name':'C','value':'e'}]");
    start(w);
    run(w, "net", DRY);
    run(w, "dns", DRY);
    await_start(w, "net-1-plan");
    await_start(w, "dns-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.class", "large");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.environment",
                 "[{\"name\":\"A\",\"value\":\"w\"},{\"name\":\"B\",\"value\":\"e\"},"
                 "{\"name\":\"C\",\"value\":\"e\"}]");
    assert_value(w, DF_KIND_TASK_ACTION, "dns-1-plan", "spec.class", "");
    assert_value(w, DF_KIND_TASK_ACTION, "dns-1-plan", "spec.environment",
                 "[{\"name\":\"C\",\"value\":\"e\"}]");
}

static void the_class_is_the_runs_else_the_executors_else_the_workspaces(void **state)
{
    struct world *w = *state;
    configure(w, "{'a':{},'b':{},'c':{}}", "{'net':{'class':'a'},'dns':{'class':'a'}}");
    make_executor(w, "net", "'class':'b'");
    make_executor(w, "dns", "'class':'b'");
    start(w);
    run(w, "net", DRY);
    run(w, "dns", "{'action':'dry-run','class':'c'}");
    await_start(w, "net-1-plan");
    await_start(w, "dns-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.class", "b");
    assert_value(w, DF_KIND_TASK_ACTION, "dns-1-plan", "spec.class", "c");
}

/* What is configured later is for later runs: an apply has what its plan had. */
static void a_run_keeps_the_environment_it_was_made_with(void **state)
{
    struct world *w = *state;
    configure(w, NULL, "{'net':{'environment':[{'name':'A','value':'1'}]}}");
    make_executor(w, "net", "");
    run(w, "net", DRY);
    cJSON_Delete(w->config.workspaces);
    w->config.workspaces = json("{'net':{'environment':[{'name':'A','value':'2'}]}}");
    start(w);
    await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.environment",
                 "[{\"name\":\"A\",\"value\":\"1\"}]");
}

static void who_says_what_about_the_pod_is_found_by_class_and_executor(void **state)
{
    struct world *w = *state;
    configure(w, "{'gpu':{'placement':{'image':'c'}},'bare':{}}",
              "{'net':{'placement':{'image':'w'}}}");
    DF_JSON cJSON *both = json("{'spec':{'class':'gpu','executorRef':{'name':'net'},"
                               "'placement':{'image':'e'}}}");
    DF_JSON cJSON *none = json("{'spec':{'class':'bare','executorRef':{'name':'dns'}}}");
    const struct df_placement_levels l = df_step_placement(&w->config, both);
    assert_string_equal(df_json_str(l.class, "image"), "c");
    assert_string_equal(df_json_str(l.workspace, "image"), "w");
    assert_string_equal(df_json_str(l.executor, "image"), "e");
    const struct df_placement_levels n = df_step_placement(&w->config, none);
    assert_true(!n.defaults && !n.class && !n.workspace && !n.environment && !n.executor);
}

static void more_variables_than_a_step_may_have_are_refused_when_the_run_is_asked_for(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *request = json(DRY);
    configure(w, NULL, "{'net':{'environment':[]}}");
    cJSON *list = df_json_array_at(df_json_object_at(w->config.workspaces, "net"), "environment");
    for (int i = 0; i < DF_LIMIT_ENVIRONMENT; i++) {
        cJSON *entry = json("{'value':''}");
        char name[16];
        (void)snprintf(name, sizeof(name), "V%d", i);
        assert_int_equal(df_json_add_str(entry, "name", name, NULL), 0);
        assert_int_equal(df_json_append(list, entry, NULL), 0);
    }
    make_executor(w, "net", "'environment':[{'name':'V0','value':''}]");
    run(w, "net", DRY);
    make_executor(w, "dns", "'environment':[{'name':'OWN','value':''}]");
    assert_true(cJSON_AddItemToObject(w->config.workspaces, "dns",
                                      cJSON_Duplicate(w->config.workspaces->child, true)));
    assert_int_equal(
        df_request_create_run(
            &w->s, "dns",
            &(struct df_run_request){request, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"},
            NULL, &err),
        -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message, "spec.environment: with that of workspaces.dns there are 501 "
                                     "variables; 500 are allowed");
}

/* ---- a class that is not there ---- */

#define UNKNOWN "class: \"gpuu\" is not among the classes of this service: gpu"

static void assert_refused(struct world *w, const char *body)
{
    struct df_err err = {0};
    DF_JSON cJSON *request = json(body);
    assert_int_equal(
        df_request_create_run(
            &w->s, "net",
            &(struct df_run_request){request, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"},
            NULL, &err),
        -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, "InvalidPlacement");
    assert_string_equal(err.message, UNKNOWN);
}

static void a_class_that_keeps_less_than_its_least_is_refused(void **state)
{
    struct df_err err = {0};
    (void)state;
    DF_JSON cJSON *good = json("{'a':{'standby':{'min':1}},'b':{'standby':{'min':1,'max':4}}}");
    DF_JSON cJSON *bad = json("{'a':{'standby':{'min':3,'max':2}}}");
    assert_int_equal(df_classes_check(good, NULL), 0);
    assert_int_equal(df_classes_check(bad, &err), -1);
    assert_non_null(strstr(err.message, "classes.a.standby.max: is 2, and min is 3"));
}

static void a_class_that_is_not_configured_is_refused_where_others_are(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'class':'gpuu'");
    run(w, "net", DRY);
    configure(w, "{'gpu':{}}", NULL);
    assert_refused(w, DRY);
    run(w, "net", "{'action':'dry-run','class':'gpu'}");
    assert_refused(w, "{'action':'dry-run','class':'gpuu'}");
}

static void a_step_whose_class_was_taken_away_fails_before_it_starts(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'class':'gpuu'");
    run(w, "net", DRY);
    configure(w, "{'gpu':{}}", NULL);
    start(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "InvalidPlacement");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message", UNKNOWN);
    assert_int_equal(fake_look(w, "net-1-plan").creates, 0);
}

#define CONFIGURED(f) cmocka_unit_test_setup_teardown(f, world_setup, teardown_configured)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIGURED(a_workspace_gives_its_executor_what_that_does_not_say_itself),
        CONFIGURED(the_class_is_the_runs_else_the_executors_else_the_workspaces),
        CONFIGURED(a_run_keeps_the_environment_it_was_made_with),
        CONFIGURED(who_says_what_about_the_pod_is_found_by_class_and_executor),
        CONFIGURED(more_variables_than_a_step_may_have_are_refused_when_the_run_is_asked_for),
        cmocka_unit_test(a_class_that_keeps_less_than_its_least_is_refused),
        CONFIGURED(a_class_that_is_not_configured_is_refused_where_others_are),
        CONFIGURED(a_step_whose_class_was_taken_away_fails_before_it_starts),
    };
    return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
