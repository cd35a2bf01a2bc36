/* When does a plan leave nothing of what the state holds? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/emptied.h"
#include "tests/unit/json_words.h"

#define RESOURCE(actions) "{'mode':'managed','change':{'actions':[" actions "]}}"
#define GONE RESOURCE("'delete'")
#define FORGOTTEN RESOURCE("'forget'")
#define UNHEARD_OF RESOURCE("'abandon'")
#define MADE RESOURCE("'create'")
#define KEPT RESOURCE("'no-op'")
#define CHANGED RESOURCE("'update'")
#define REPLACED RESOURCE("'delete','create'")
#define REPLACED_FIRST RESOURCE("'create','delete'")
#define LOOKED_UP "{'mode':'data','change':{'actions':['read']}}"
#define IMPORTED "{'mode':'managed','change':{'actions':['no-op'],'importing':{'id':'x'}}}"

static void a_plan_leaves_nothing_when_all_is_destroyed_or_forgotten(void **state)
{
    (void)state;
    static const struct {
        const char *changes;
        bool empties;
    } cases[] = {
        {"", false},
        {GONE, true},
        {GONE "," GONE, true},
        {GONE "," MADE, true},
        {GONE "," FORGOTTEN, true},
        {GONE "," LOOKED_UP, true},
        {GONE "," IMPORTED, true},
        {GONE "," KEPT, false},
        {KEPT "," GONE, false},
        {GONE "," CHANGED, false},
        {GONE "," REPLACED, false},
        {GONE "," REPLACED_FIRST, false},
        {REPLACED, false},
        {MADE, false},
        {FORGOTTEN, true},
        {FORGOTTEN "," MADE, true},
        {FORGOTTEN "," KEPT, false},
        {UNHEARD_OF, true},
        {UNHEARD_OF "," KEPT, false},
        {KEPT, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *text =
            df_strf("{'prior_state':{'a':{}},'resource_changes':[%s]}", cases[i].changes);
        DF_JSON cJSON *plan = json(text);
        DF_FREE char *printed = df_json_print(plan);
        bool empties = !cases[i].empties;
        assert_int_equal(df_plan_text_empties(printed, strlen(printed), &empties, NULL), 0);
        if (empties != cases[i].empties)
            fail_msg("%s", text);
    }
}

static void what_cannot_be_read_counts_as_a_plan_that_leaves_nothing(void **state)
{
    (void)state;
    bool empties = false;
    assert_int_equal(df_plan_text_empties("{", 1, &empties, NULL), -1);
    assert_true(df_plan_empties(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_leaves_nothing_when_all_is_destroyed_or_forgotten),
        cmocka_unit_test(what_cannot_be_read_counts_as_a_plan_that_leaves_nothing),
    };
    return cmocka_run_group_tests_name("emptied", tests, NULL, NULL);
}
