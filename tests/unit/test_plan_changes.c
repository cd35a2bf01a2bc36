/* What does a plan change? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "runner/plan_changes.h"
#include "tests/unit/json_words.h"

#define CHANGE(mode, type, actions, more)                                                          \
    "{'mode':'" mode "','type':'" type "','change':{'actions':[" actions "]" more "}}"
#define MANAGED(actions) CHANGE("managed", "t", actions, "")
#define MOVED                                                                                      \
    "{'mode':'managed','type':'t','previous_address':'t.b','change':{'actions':['no-op']}}"
#define PLAN(changes) "'format_version':'1.2','resource_changes':[" changes "]"

/* "create update | t v" */
static char *found(const char *members)
{
    DF_FREE char *text = df_strf("{%s}", members);
    DF_JSON cJSON *plan = json(text), *changes = NULL;
    DF_FREE char *printed = df_json_print(plan);
    struct df_buf out = DF_BUF_INIT(65536);
    const cJSON *item;
    assert_int_equal(df_plan_changes_read(printed, strlen(printed), &changes, NULL), 0);
    cJSON_ArrayForEach (item, df_json_at(changes, "kinds"))
        (void)df_buf_addf(&out, "%s ", item->valuestring);
    (void)df_buf_adds(&out, "|");
    cJSON_ArrayForEach (item, df_json_at(changes, "types"))
        (void)df_buf_addf(&out, " %s", item->valuestring);
    return df_buf_take(&out);
}

static void kinds_and_types_are_those_of_what_happens_to_resources(void **state)
{
    (void)state;
    static const struct {
        const char *plan, *found;
    } cases[] = {
        {PLAN(""), "|"},
        {PLAN(MANAGED("'no-op'")), "|"},
        {PLAN(MANAGED("'create'")), "create | t"},
        {PLAN(MANAGED("'create'") "," MANAGED("'create'")), "create | t"},
        {PLAN(MANAGED("'create'") "," CHANGE("managed", "v", "'update'", "")),
         "create update | t v"},
        {PLAN(MANAGED("'delete'")), "delete | t"},
        {PLAN(MANAGED("'forget'")), "forget | t"},
        {PLAN(MANAGED("'delete','create'")), "replace | t"},
        {PLAN(MANAGED("'create','delete'")), "replace | t"},
        {PLAN(MANAGED("'create','forget'")), "other | t"},
        {PLAN(MANAGED("'create','update'")), "other | t"},
        {PLAN(MANAGED("'no-op','delete'")), "other | t"},
        {PLAN(MANAGED("'abandon'")), "other | t"},
        {PLAN(MANAGED("")), "other | t"},
        {PLAN("{'mode':'managed','type':'t'}"), "other | t"},
        {PLAN("{'change':{'actions':['create']}}"), "other |"},
        {PLAN("7"), "other |"},
        {PLAN(CHANGE("data", "t", "'read'", "")), "|"},
        {PLAN(CHANGE("data", "t", "'no-op'", "")), "|"},
        {PLAN(CHANGE("data", "t", "'create'", "")), "other | t"},
        {PLAN(CHANGE("data", "t", "'read','delete'", "")), "other | t"},
        {PLAN(CHANGE("ephemeral", "t", "'open'", "")), "other | t"},
        {PLAN(CHANGE("managed", "t", "'no-op'", ",'importing':{'id':'x'}")), "import | t"},
        {PLAN(CHANGE("managed", "t", "'update'", ",'importing':{'id':'x'}")), "update import | t"},
        {PLAN(MOVED), "move | t"},
        {PLAN("") ",'resource_drift':[" MANAGED("'delete'") "]", "drift |"},
        {PLAN(MANAGED("'create'")) ",'resource_drift':[" MANAGED("'delete'") "]", "create | t"},
        {PLAN("") ",'errored':false,'complete':true,'applyable':true,'timestamp':'x'", "|"},
        {PLAN("") ",'errored':true", "other |"},
        {PLAN("") ",'complete':false", "other |"},
        {PLAN("") ",'deferred_changes':[{}]", "other |"},
        {PLAN("") ",'action_invocations':[{}]", "other |"},
        {PLAN("") ",'variables':{'action_invocations':{'value':1}},'output_changes':{'o':1}", "|"},
        {PLAN("") ",'checks':[{}],'prior_state':{},'planned_values':{},'configuration':{}", "|"},
        {"'format_version':'2.0','resource_changes':[]", "other |"},
        {"'resource_changes':[]", "other |"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *is = found(cases[i].plan);
        if (strcmp(is, cases[i].found) != 0)
            fail_msg("%s: %s, not %s", cases[i].plan, is, cases[i].found);
    }
}

static void more_types_than_are_kept_need_a_look(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct df_buf plan = DF_BUF_INIT(65536);
        (void)df_buf_adds(&plan, "'format_version':'1.2','resource_changes':[");
        for (int i = 0; i < DF_LIMIT_CHANGED_TYPES + more; i++)
            (void)df_buf_addf(&plan, "%s" CHANGE("managed", "t%d", "'create'", ""), i ? "," : "",
                              i);
        (void)df_buf_adds(&plan, "]");
        DF_FREE char *text = df_buf_take(&plan);
        DF_FREE char *is = found(text);
        assert_int_equal(df_starts_with(is, "create other |"), more);
    }
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    cJSON *changes = NULL;
    assert_int_equal(df_plan_changes_read("{", 1, &changes, NULL), -1);
    assert_null(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_and_types_are_those_of_what_happens_to_resources),
        cmocka_unit_test(more_types_than_are_kept_need_a_look),
        cmocka_unit_test(what_is_no_json_is_refused),
    };
    return cmocka_run_group_tests_name("plan_changes", tests, NULL, NULL);
}
