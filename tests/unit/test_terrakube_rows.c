#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/terrakube/rows.h"
#include "runner/terrakube/values.h"
#include "tests/unit/json_words.h"

static void is(const cJSON *actual, const char *expected)
{
    if (expected)
        assert_json(actual, expected, "it");
    else
        assert_null(actual);
}

/* ---- values ---- */

static void what_is_sensitive_is_null(void **state)
{
    (void)state;
    static const struct {
        const char *value, *marks, *expected;
    } cases[] = {
        {"{'a':1,'b':'x'}", "{'b':true}", "{'a':1,'b':null}"},
        {"{'a':[1,2,3]}", "{'a':[false,true]}", "{'a':[1,null,3]}"},
        {"{'a':{'b':{'c':'x','d':'y'}}}", "{'a':{'b':{'c':true}}}",
         "{'a':{'b':{'c':null,'d':'y'}}}"},
        {"{'a':1}", "true", "null"},
        {"{'a':1}", "false", "{'a':1}"},
        {"null", "{}", "null"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *value = json(cases[i].value);
        DF_JSON cJSON *marks = json(cases[i].marks);
        DF_JSON cJSON *hidden = df_values_hide(value, marks);
        is(hidden, cases[i].expected);
    }
}

static void a_sensitive_input_makes_a_sensitive_output(void **state)
{
    (void)state;
    DF_JSON cJSON *marks = json("{'input':true}");
    DF_JSON cJSON *of_data = df_values_marks("terraform_data", "terraform_data.x", marks);
    is(of_data, "{'input':true,'output':true}");
    DF_JSON cJSON *of_other = df_values_marks("null_resource", "null_resource.x", marks);
    is(of_other, "{'input':true}");
    DF_JSON cJSON *own = json("{'input':true,'output':{'a':true}}");
    DF_JSON cJSON *kept = df_values_marks("terraform_data", "terraform_data.x", own);
    is(kept, "{'input':true,'output':{'a':true}}");
}

static void a_changed_secret_is_told_without_its_value(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *marks, *expected;
    } cases[] = {
        {"{'p':'a','q':1}", "{'p':'b','q':2}", "{'p':true}", "{'p':true}"},
        {"{'p':'a'}", "{'p':'a'}", "{'p':true}", NULL},
        {"null", "{'p':'a'}", "{'p':true}", "{'p':true}"},
        {"{'l':['a','b']}", "{'l':['a','c']}", "{'l':[true,true]}", "{'l':[null,true]}"},
        {"{'q':1}", "{'q':2}", "{}", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *before = json(cases[i].before);
        DF_JSON cJSON *after = json(cases[i].after);
        DF_JSON cJSON *marks = json(cases[i].marks);
        DF_JSON cJSON *changed = df_values_changed(before, after, marks, marks);
        is(changed, cases[i].expected);
    }
}

static void what_was_unknown_becomes_known_but_no_secret(void **state)
{
    (void)state;
    static const struct {
        const char *unknown, *after, *known, *marks, *expected, *still;
    } cases[] = {
        {"{'id':true}", "{'n':1}", "{'id':'i-1','n':1}", "{}", "{'n':1,'id':'i-1'}",
         "{'id':false}"},
        {"{'id':true}", "{}", "{'id':'secret'}", "{'id':true}", "{}", "{'id':true}"},
        {"{'id':true}", "{}", "{}", "{}", "{}", "{'id':true}"},
        {"{'b':[{},{'ip':true}]}", "{'b':[{'n':1},{'n':2}]}", "{'b':[{'n':1},{'n':2,'ip':'x'}]}",
         "{}", "{'b':[{'n':1},{'n':2,'ip':'x'}]}", "{'b':[{},{'ip':false}]}"},
        {"{'t':{}}", "{}", "{'t':null}", "{}", "{}", "{'t':{}}"},
        {"{'o':true}", "{}", "{'o':{'p':'secret','q':1}}", "{'o':{'p':true}}",
         "{'o':{'p':null,'q':1}}", "{'o':false}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *unknown = json(cases[i].unknown);
        cJSON *after = json(cases[i].after);
        DF_JSON cJSON *known = json(cases[i].known);
        DF_JSON cJSON *marks = json(cases[i].marks);
        DF_JSON cJSON *still = df_values_resolve(unknown, &after, known, marks);
        is(after, cases[i].expected);
        is(still, cases[i].still);
        cJSON_Delete(after);
    }
}

/* ---- events ---- */

#define ROWS DF_CLEANUP(df_rows_free) struct df_rows

static struct df_rows make_rows(void)
{
    struct df_rows r;
    assert_int_equal(df_rows_init(&r, NULL), 0);
    return r;
}

static void take(struct df_rows *r, const char *const *events)
{
    for (size_t i = 0; events[i]; i++) {
        DF_JSON cJSON *event = json(events[i]);
        if (!df_rows_event(r, event))
            fail_msg("passed over: %s", events[i]);
    }
}
#define TAKE(r, ...) take(r, (const char *const[]){__VA_ARGS__, NULL})

#define HOOK(type, more) "{'type':'" type "','hook':{'resource':{'addr':'a.b'}" more "}}"

static void an_apply_moves_its_resource_to_its_end(void **state)
{
    (void)state;
    ROWS r = make_rows();
    TAKE(&r, HOOK("apply_start", ",'action':'create'"));
    is(r.rows, "[{'address':'a.b','status':'applying'}]");
    TAKE(&r, HOOK("apply_progress", ",'elapsed_seconds':10"));
    is(r.rows, "[{'address':'a.b','status':'applying','elapsedSeconds':10}]");
    TAKE(&r, HOOK("provision_start", ",'provisioner':'local-exec'"),
         HOOK("provision_progress", ",'provisioner':'local-exec','output':'hello'"));
    is(r.rows, "[{'address':'a.b','status':'applying','elapsedSeconds':10,"
               "'currentProvisioner':'local-exec','provisionerOutput':['hello']}]");
    TAKE(&r, HOOK("provision_complete", ",'provisioner':'local-exec'"),
         HOOK("apply_complete", ",'elapsed_seconds':12"));
    is(r.rows, "[{'address':'a.b','status':'applied','elapsedSeconds':12,"
               "'provisionerOutput':['hello']}]");
    TAKE(&r, HOOK("apply_errored", ",'elapsed_seconds':13"));
    assert_string_equal(df_json_str(r.rows->child, "status"), "errored");
}

static void a_plan_refreshes_then_plans_and_tells_drift(void **state)
{
    (void)state;
    ROWS r = make_rows();
    TAKE(&r, HOOK("refresh_start", ",'id_value':'x'"));
    is(r.rows, "[{'address':'a.b','action':'no-op','previousStatus':'pending',"
               "'status':'refreshing'}]");
    TAKE(&r, HOOK("refresh_complete", ""),
         "{'type':'resource_drift','change':{'resource':{'addr':'a.b'},'action':'update'}}",
         "{'type':'planned_change','change':{'resource':{'addr':'a.b'},'action':'replace'}}");
    is(r.rows, "[{'address':'a.b','action':'replace','status':'planned','driftAction':'update'}]");
}

static void an_ephemeral_resource_is_one_in_both_tools(void **state)
{
    (void)state;
    static const struct {
        const char *event, *status;
    } cases[] = {
        {HOOK("ephemeral_op_start", ",'action':'open'"), "ephemeral-opening"},
        {HOOK("ephemeral_op_complete", ",'action':'open','elapsed_seconds':1"), "applied"},
        {HOOK("ephemeral_op_start", ",'action':'close'"), "ephemeral-closing"},
        {HOOK("ephemeral_op_complete", ",'action':'renew'"), "ephemeral-renewed"},
        {HOOK("ephemeral_op_errored", ",'action':'open'"), "ephemeral-errored"},
        {HOOK("ephemeral_action_started", ",'Msg':'Opening...'"), "ephemeral-opening"},
        {HOOK("ephemeral_action_started", ",'Msg':'Closing...'"), "ephemeral-closing"},
        {HOOK("ephemeral_action_complete", ",'Msg':'Renewing complete'"), "ephemeral-renewed"},
        {HOOK("ephemeral_action_complete", ",'Msg':'Close complete'"), "applied"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        ROWS r = make_rows();
        TAKE(&r, cases[i].event);
        assert_string_equal(df_json_str(r.rows->child, "action"), "ephemeral");
        assert_string_equal(df_json_str(r.rows->child, "status"), cases[i].status);
    }
}

static void a_diagnostic_goes_to_its_resource_or_to_the_job(void **state)
{
    (void)state;
    ROWS r = make_rows();
    TAKE(&r,
         "{'type':'diagnostic','diagnostic':{'severity':'error','summary':'s','detail':'d',"
         "'address':'a.b','range':{'filename':'main.tf','start':{'line':12}}}}",
         "{'type':'diagnostic','diagnostic':{'severity':'warning','summary':'deprecated'}}",
         "{'type':'diagnostic','diagnostic':{'severity':'unknown','summary':'x'}}");
    is(r.rows, "[{'address':'a.b','status':'errored','diagnostics':[{'severity':'error',"
               "'summary':'s','detail':'d','location':'main.tf:12'}]}]");
    is(r.diagnostics, "[{'severity':'warning','summary':'deprecated'}]");
}

/* A provider, or who writes to the log, may print what looks like an event. */
static void a_number_that_is_none_is_left_out(void **state)
{
    (void)state;
    static const char *const numbers[] = {"1e300", "-1e300", "-1", "0.5", "99999999999999999999"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(numbers); i++) {
        ROWS r = make_rows();
        DF_FREE char *hook = df_strf(HOOK("apply_progress", ",'elapsed_seconds':%s"), numbers[i]);
        DF_FREE char *diagnostic = df_strf(
            "{'type':'diagnostic','diagnostic':{'severity':'error','summary':'s','address':'a.b',"
            "'range':{'filename':'main.tf','start':{'line':%s}}}}",
            numbers[i]);
        TAKE(&r, hook, diagnostic);
        assert_null(df_json_at(r.rows->child, "elapsedSeconds"));
        assert_string_equal(
            df_json_str(df_json_at(r.rows->child, "diagnostics")->child, "location"), "main.tf");
    }
}

static void other_events_change_nothing(void **state)
{
    (void)state;
    static const char *const cases[] = {"{'type':'version'}",
                                        "{'type':'change_summary'}",
                                        "{'type':'apply_start','hook':{}}",
                                        "{}",
                                        "[]",
                                        "7"};
    ROWS r = make_rows();
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *event = json(cases[i]);
        assert_false(df_rows_event(&r, event));
    }
    is(r.rows, "[]");
}

static void many_resources_keep_their_rows_up_to_a_limit(void **state)
{
    (void)state;
    ROWS r = make_rows();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < DF_LIMIT_TERRAKUBE_ROWS + 5; i++) {
            DF_FREE char *text =
                df_strf("{'type':'apply_complete','hook':{'resource':{'addr':'a.b[%d]'}}}", i);
            DF_JSON cJSON *event = json(text);
            assert_int_equal(df_rows_event(&r, event), i < DF_LIMIT_TERRAKUBE_ROWS);
        }
        assert_int_equal(cJSON_GetArraySize(r.rows), DF_LIMIT_TERRAKUBE_ROWS);
    }
}

static void the_output_of_a_provisioner_has_a_limit(void **state)
{
    (void)state;
    ROWS r = make_rows();
    for (int i = 0; i < DF_LIMIT_TERRAKUBE_ROW_LINES + 5; i++)
        TAKE(&r, HOOK("provision_progress", ",'output':'x'"));
    assert_int_equal(cJSON_GetArraySize(df_json_at(r.rows->child, "provisionerOutput")),
                     DF_LIMIT_TERRAKUBE_ROW_LINES);
}

/* ---- plan, state, outputs ---- */

#define RESOURCE(name, change)                                                                     \
    "{'address':'terraform_data." name                                                             \
    "','module_address':'module.m','type':'terraform_data','name':'" name "','change':" change "}"

static void the_plan_gives_its_values_without_secrets(void **state)
{
    (void)state;
    ROWS r = make_rows();
    TAKE(&r, "{'type':'planned_change','change':{'resource':{'addr':'terraform_data.x'},"
             "'action':'create'}}");
    DF_JSON cJSON *plan = json("{'resource_changes':[" RESOURCE(
        "x",
        "{'actions':['create'],'before':null,"
        "'after':{'input':'s3cret','n':1},"
        "'after_unknown':{'id':true},"
        "'before_sensitive':false,"
        "'after_sensitive':{'input':true}}") "," RESOURCE("same",
                                                          "{'actions':['no-op'],'before':{},'after'"
                                                          ":{}}") "," RESOURCE("got",
                                                                               "{'actions':['no-op'"
                                                                               "],'before':{},'"
                                                                               "after':{},'"
                                                                               "importing':{'id':'"
                                                                               "i'}}") "]}");
    df_rows_plan(&r, plan);
    is(r.rows, "[{'address':'terraform_data.x','status':'planned','moduleAddress':'module.m',"
               "'resourceType':'terraform_data','resourceName':'x','actions':['create'],"
               "'action':'create','before':null,'after':{'input':null,'n':1},"
               "'beforeSensitive':false,'afterSensitive':{'input':true,'output':true},"
               "'changedSensitive':{'input':true},'afterUnknown':{'id':true}},"
               "{'address':'terraform_data.got','moduleAddress':'module.m',"
               "'resourceType':'terraform_data','resourceName':'got','actions':['no-op'],"
               "'action':'import','importing':{'id':'i'},'before':{},'after':{}}]");
}

static void the_action_of_a_row_is_one_word(void **state)
{
    (void)state;
    static const struct {
        const char *actions, *word;
    } cases[] = {{"['delete','create']", "replace"},
                 {"['create','delete']", "replace"},
                 {"['update']", "update"},
                 {"['delete']", "delete"},
                 {"['read']", "read"},
                 {"['forget']", "unknown"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        ROWS r = make_rows();
        DF_FREE char *text = df_strf(
            "{'resource_changes':[{'address':'a.b','change':{'actions':%s}}]}", cases[i].actions);
        DF_JSON cJSON *plan = json(text);
        df_rows_plan(&r, plan);
        assert_string_equal(df_json_str(r.rows->child, "action"), cases[i].word);
    }
}

static void an_apply_begins_with_the_plan_and_ends_with_the_state(void **state)
{
    (void)state;
    ROWS r = make_rows();
    TAKE(&r, HOOK("apply_start", ""));
    DF_JSON cJSON *rows =
        json("[{'address':'a.b','status':'planned','action':'create','after':{'n':1},"
             "'afterUnknown':{'id':true,'key':true},'afterSensitive':{}},"
             "{'address':'a.imported','status':'planned','action':'import'},"
             "{'address':'ephemeral.e','status':'applied','action':'ephemeral'}]");
    df_rows_seed(&r, rows);
    assert_string_equal(df_json_str(r.rows->child, "status"), "applying");
    assert_string_equal(df_json_str(r.rows->child->next, "status"), "pending");
    assert_string_equal(df_json_str(r.rows->child->next->next, "status"), "applied");
    TAKE(&r, HOOK("apply_complete", ""));
    DF_JSON cJSON *now =
        json("{'values':{'root_module':{'child_modules':[{'resources':[{'address':'a.b','type':'a',"
             "'values':{'n':1,'id':'i-1','key':'s3cret'},'sensitive_values':{'key':true}}]}],"
             "'resources':[{'address':'a.imported','type':'a','values':{}}]}}}");
    df_rows_state(&r, now);
    is(r.rows, "[{'address':'a.b','status':'applied','action':'create',"
               "'after':{'n':1,'id':'i-1'},'afterUnknown':{'id':false,'key':true},"
               "'afterSensitive':{'key':true}},"
               "{'address':'a.imported','action':'import','status':'applied'},"
               "{'address':'ephemeral.e','action':'ephemeral','status':'applied'}]");
}

static void outputs_are_in_order_and_sensitive_ones_have_no_value(void **state)
{
    (void)state;
    DF_JSON cJSON *outputs = json("{'z':{'sensitive':false,'type':'string','value':'x'},"
                                  "'a':{'sensitive':true,'type':'string','value':'s3cret'}}");
    DF_JSON cJSON *list = df_rows_outputs(outputs);
    is(list, "[{'name':'a','type':'string','sensitive':true,'value':null},"
             "{'name':'z','type':'string','sensitive':false,'value':'x'}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sensitive_is_null),
        cmocka_unit_test(a_sensitive_input_makes_a_sensitive_output),
        cmocka_unit_test(a_changed_secret_is_told_without_its_value),
        cmocka_unit_test(what_was_unknown_becomes_known_but_no_secret),
        cmocka_unit_test(an_apply_moves_its_resource_to_its_end),
        cmocka_unit_test(a_plan_refreshes_then_plans_and_tells_drift),
        cmocka_unit_test(an_ephemeral_resource_is_one_in_both_tools),
        cmocka_unit_test(a_diagnostic_goes_to_its_resource_or_to_the_job),
        cmocka_unit_test(a_number_that_is_none_is_left_out),
        cmocka_unit_test(other_events_change_nothing),
        cmocka_unit_test(many_resources_keep_their_rows_up_to_a_limit),
        cmocka_unit_test(the_output_of_a_provisioner_has_a_limit),
        cmocka_unit_test(the_plan_gives_its_values_without_secrets),
        cmocka_unit_test(the_action_of_a_row_is_one_word),
        cmocka_unit_test(an_apply_begins_with_the_plan_and_ends_with_the_state),
        cmocka_unit_test(outputs_are_in_order_and_sensitive_ones_have_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
