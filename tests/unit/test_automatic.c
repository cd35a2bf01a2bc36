/* Which plans need no look because of what they change? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/approval.h"
#include "spawner/model/automatic.h"
#include "tests/unit/json_words.h"

#define RULE "'automaticFor':{'changes':['create','update'],'exceptTypes':['iam']}"

static cJSON *executor_of(const char *spec)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'net'},'spec':{%s}}", spec);
    return json(text);
}

static cJSON *plan_of(const char *changes)
{
    DF_FREE char *text = df_strf("{'status':{%s}}", changes);
    return json(text);
}

#define CHANGES(kinds, types) "'planChanges':{'kinds':[" kinds "],'types':[" types "]}"

static void a_plan_is_covered_if_all_of_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *plan;
        bool covers;
    } cases[] = {
        {RULE, CHANGES("'create'", "'net'"), true},
        {RULE, CHANGES("'create','update'", "'net','disk'"), true},
        {RULE, CHANGES("", ""), true},
        {RULE, CHANGES("'create'", "'net','iam'"), false},
        {RULE, CHANGES("'create','replace'", "'net'"), false},
        {RULE, CHANGES("'delete'", "'net'"), false},
        {RULE, CHANGES("'import'", "'net'"), false},
        {RULE, CHANGES("'drift'", ""), false},
        {RULE, CHANGES("'create','other'", "'net'"), false},
        {RULE, CHANGES("'Create'", "'net'"), false},
        {RULE, "'planSummary':{'add':1}", false},
        {RULE, "", false},
        {"", CHANGES("'create'", "'net'"), false},
        {RULE ",'separateApprover':true", CHANGES("'create'", "'net'"), false},
        {RULE ",'requiredApprovals':2", CHANGES("'create'", "'net'"), false},
        {RULE ",'approvers':{'users':['ann']}", CHANGES("'create'", "'net'"), false},
    };
    const struct df_approval_rules none = {0}, separate = {.separate = true};
    DF_JSON cJSON *run = json("{'spec':{'action':'provision'}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *executor = executor_of(cases[i].spec), *plan = plan_of(cases[i].plan);
        if (df_approval_is_covered(&none, run, executor, plan) != cases[i].covers)
            fail_msg("%s %s", cases[i].spec, cases[i].plan);
        assert_false(df_approval_is_covered(&separate, run, executor, plan));
    }
    assert_false(df_approval_is_covered(&none, run, NULL, NULL));
}

static void covering_more_is_loosening(void **state)
{
    (void)state;
#define FOR(changes, types) "'automaticFor':{'changes':[" changes "],'exceptTypes':[" types "]}"
    static const struct {
        const char *old, *now;
        bool loosens;
    } cases[] = {
        {"", "", false},
        {"", RULE, true},
        {RULE, "", false},
        {RULE, RULE, false},
        {FOR("'create'", "'iam'"), FOR("'create','update'", "'iam'"), true},
        {FOR("'create','update'", "'iam'"), FOR("'update'", "'iam'"), false},
        {FOR("'create'", "'iam'"), FOR("'create'", ""), true},
        {FOR("'create'", "'iam'"), "'automaticFor':{'changes':['create']}", true},
        {FOR("'create'", "'iam'"), FOR("'create'", "'key','iam'"), false},
        {FOR("'create'", "'iam'"), FOR("'create'", "'key'"), true},
        {"'approval':'automatic'", RULE, false},
        {"'destroyApprovals':2", "", true},
        {"'destroyApprovals':2", "'destroyApprovals':1", true},
        {"'destroyApprovals':2", "'requiredApprovals':2", false},
        {"'destroyApprovals':2,'requiredApprovals':3", "'requiredApprovals':3", false},
        {"", "'destroyApprovals':2", false},
        {"", "'applyWindow':{'from':'10:00','to':'11:00'}", false},
        {"'applyWindow':{'from':'10:00','to':'11:00'}", "", true},
        {"'applyWindow':{'from':'10:00','to':'11:00'}",
         "'applyWindow':{'from':'10:00','to':'12:00'}", true},
        {"'approvers':{'users':['ann']}", "'approvers':{'users':['bob']}", true},
        {"'approvers':{'users':['ann']}", "", true},
        {"", "'approvers':{'users':['ann']}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *old = executor_of(cases[i].old), *now = executor_of(cases[i].now);
        if ((df_approval_loosened(old, now) != NULL) != cases[i].loosens)
            fail_msg("%s -> %s", cases[i].old, cases[i].now);
    }
}

/* Of another plan, or malformed: as if it were not there. */
static void a_report_counts_for_its_own_plan(void **state)
{
    (void)state;
#define REPORT(plan, kinds, types)                                                                 \
    "{'plan':{'sha256':'" plan "'},'planChanges':{'kinds':" kinds ",'types':" types "}}"
    static const struct {
        const char *report;
        bool counts;
    } cases[] = {
        {REPORT("aa", "['create']", "['net']"), true},
        {REPORT("bb", "['create']", "['net']"), false},
        {"{'planChanges':{'kinds':['create'],'types':['net']}}", false},
        {REPORT("aa", "['create']", "{}"), false},
        {REPORT("aa", "{'create':1}", "['net']"), false},
        {REPORT("aa", "['create',1]", "['net']"), false},
        {REPORT("aa", "['a-word-of-more-than-16-bytes']", "['net']"), false},
        {"{'plan':{'sha256':'aa'}}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *report = json(cases[i].report);
        DF_JSON cJSON *task = json("{'status':{'plan':{'sha256':'aa'}}}");
        assert_int_equal(df_automatic_take(task, report, NULL), 0);
        if ((df_json_at(task, "status.planChanges") != NULL) != cases[i].counts)
            fail_msg("%s", cases[i].report);
        DF_JSON cJSON *without = json("{'status':{}}");
        assert_int_equal(df_automatic_take(without, report, NULL), 0);
        assert_null(df_json_at(without, "status.planChanges"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_covered_if_all_of_it_is),
        cmocka_unit_test(covering_more_is_loosening),
        cmocka_unit_test(a_report_counts_for_its_own_plan),
    };
    return cmocka_run_group_tests_name("automatic", tests, NULL, NULL);
}
