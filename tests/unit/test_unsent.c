/* When progress that is not sent yet is to be sent, and what it has become by then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/report/unsent.h"
#include "tests/unit/json_words.h"

static void add_mark(struct df_unsent *p, const char *body, bool hurries, int64_t now_ms)
{
    DF_JSON cJSON *parsed = json(body);
    df_unsent_add(p, parsed, hurries, now_ms);
}

static void
progress_that_changes_no_phase_waits_for_the_result_however_long_ago_the_last_was(void **state)
{
    (void)state;
    struct df_unsent p = {0};
    add_mark(&p, "{'timeline':[1]}", false, 5000);
    add_mark(&p, "{'timeline':[2]}", false, 5400);
    assert_int_equal(df_unsent_due_ms(&p, 1000), 5000 + DF_PROGRESS_LAZY_MS);
    assert_int_equal(df_unsent_due_ms(&p, 5499), 5499 + DF_PROGRESS_GAP_MS);
    add_mark(&p, "{'timeline':[3]}", true, 5400);
    assert_int_equal(df_unsent_due_ms(&p, 1000), 1000 + DF_PROGRESS_GAP_MS);
    df_unsent_free(&p);
}

static void progress_that_could_not_be_sent_is_due_as_soon_as_before(void **state)
{
    (void)state;
    static const struct {
        bool failed, later;
        int64_t due_ms;
    } table[] = {{true, false, 1000 + DF_PROGRESS_GAP_MS},
                 {false, true, 1000 + DF_PROGRESS_GAP_MS},
                 {false, false, 990 + DF_PROGRESS_LAZY_MS}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_unsent p = {0}, failed = {0};
        add_mark(&failed, "{'timeline':[1],'tool':'old'}", table[i].failed, 990);
        add_mark(&p, "{'timeline':[2],'tool':'new'}", table[i].later, 1010);
        df_unsent_put_back(&p, &failed);
        assert_int_equal(df_unsent_due_ms(&p, 1000), table[i].due_ms);
        DF_FREE char *text = df_json_print(p.body);
        assert_string_equal(text, "{\"timeline\":[1,2],\"tool\":\"new\"}");
        assert_null(failed.body);
        df_unsent_free(&p);
        assert_int_equal(df_unsent_due_ms(&p, 1000), INT64_MAX);
    }
}

static void progress_that_could_not_be_sent_is_due_though_nothing_came_after_it(void **state)
{
    (void)state;
    struct df_unsent p = {0}, failed = {0};
    add_mark(&failed, "{'timeline':[1]}", true, 990);
    df_unsent_put_back(&p, &failed);
    assert_int_equal(df_unsent_due_ms(&p, 1000), 1000 + DF_PROGRESS_GAP_MS);
    df_unsent_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            progress_that_changes_no_phase_waits_for_the_result_however_long_ago_the_last_was),
        cmocka_unit_test(progress_that_could_not_be_sent_is_due_as_soon_as_before),
        cmocka_unit_test(progress_that_could_not_be_sent_is_due_though_nothing_came_after_it),
    };
    return cmocka_run_group_tests_name("unsent", tests, NULL, NULL);
}
