/* What the plan of a dry run does not know: the run whose turn it is meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/beside.h"
#include "tests/unit/json_words.h"

#define DRY "'spec':{'action':'dry-run'}"
#define BESIDE "{" DRY ",'status':{'beside':'net-1'}}"
#define ENDED(steps)                                                                               \
    "{'spec':{'action':'provision'},'status':{'phase':'Failed','steps':[" steps "]}}"

static void the_run_beside_is_looked_for_once_and_for_dry_runs_alone(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        bool is_open;
    } cases[] = {
        {"{" DRY "}", true},
        {"{" DRY ",'status':{'phase':'Pending'}}", true},
        {BESIDE, false},
        {"{" DRY ",'status':{'steps':[{'name':'plan'}]}}", false},
        {"{'spec':{'action':'provision'}}", false},
        {"{'spec':{'action':'dance'}}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *run = json(cases[i].run);
        if (df_beside_is_open(run) != cases[i].is_open)
            fail_msg("%s", cases[i].run);
    }
}

static void what_the_plan_does_not_know_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *run, *beside, *words;
    } cases[] = {
        {"{" DRY "}", NULL, ""},
        {BESIDE, "{'status':{'phase':'WaitingApproval'}}",
         "the plan is of the state as it is stored: run net-1, which waits for approval, is no "
         "part "
         "of it"},
        {BESIDE, "{'status':{'phase':'Running'}}",
         "the plan is of the state as it is stored: run net-1, which is running, is no part of it"},
        {BESIDE, "{}",
         "the plan is of the state as it is stored: run net-1, which is about to begin, is no part "
         "of it"},
        {BESIDE, ENDED("{'name':'plan'}"), ""},
        {BESIDE, ENDED("{'name':'plan'},{'name':'apply'}"),
         "the plan is of the state as it was stored: run net-1 has ended since and may have "
         "changed "
         "it"},
        {BESIDE, NULL,
         "the plan is of the state as it was stored: run net-1 has ended since and may have "
         "changed "
         "it"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *run = json(cases[i].run);
        DF_JSON cJSON *beside = cases[i].beside ? json(cases[i].beside) : NULL;
        char words[256] = "?";
        df_beside_words(run, beside, words, sizeof words);
        assert_string_equal(words, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_beside_is_looked_for_once_and_for_dry_runs_alone),
        cmocka_unit_test(what_the_plan_does_not_know_is_said),
    };
    return cmocka_run_group_tests_name("beside", tests, NULL, NULL);
}
