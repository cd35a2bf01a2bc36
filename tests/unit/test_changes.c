/* How many objects change, by kind: one table for all who count, store or show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/changes/changes.h"
#include "tests/unit/json_words.h"

static void each_kind_is_in_documents_sentences_and_columns(void **state)
{
    (void)state;
    for (int i = 0; i < DF_CHANGES_KINDS; i++) {
        struct df_changes c = {0}, again = {0};
        char planned[DF_CHANGES_WORDS], done[DF_CHANGES_WORDS];
        DF_BUF struct df_buf column = DF_BUF_INIT(256);
        DF_JSON cJSON *summary = cJSON_CreateObject();
        c.of[i] = 4711;
        assert_int_equal(df_changes_total(&c), 4711);
        df_changes_words(&c, false, planned, sizeof planned);
        df_changes_words(&c, true, done, sizeof done);
        df_changes_column(&c, &column);
        assert_non_null(strstr(planned, "4711 "));
        assert_non_null(strstr(done, "4711 "));
        assert_non_null(strstr(df_buf_str(&column), "4711"));
        assert_int_equal(df_changes_write(&c, summary, NULL), 0);
        assert_int_equal(df_json_int(summary, df_changes_name((enum df_changes_kind)i), 0), 4711);
        assert_int_equal(cJSON_GetArraySize(summary), DF_CHANGES_KINDS);
        assert_int_equal(df_changes_read(summary, &again, NULL), 0);
        assert_memory_equal(&c, &again, sizeof c);
    }
}

static void the_three_usual_kinds_are_shown_even_if_nothing_changes(void **state)
{
    (void)state;
    const struct df_changes none = {0};
    char words[DF_CHANGES_WORDS];
    DF_BUF struct df_buf column = DF_BUF_INIT(256);
    df_changes_words(&none, false, words, sizeof words);
    df_changes_column(&none, &column);
    assert_string_equal(words, "0 to add, 0 to change, 0 to destroy");
    assert_string_equal(df_buf_str(&column), "+0 ~0 -0");
}

static void all_kinds_at_once_fit_into_a_sentence(void **state)
{
    (void)state;
    struct df_changes c;
    char words[DF_CHANGES_WORDS];
    for (int i = 0; i < DF_CHANGES_KINDS; i++)
        c.of[i] = INT32_MAX;
    df_changes_words(&c, true, words, sizeof words);
    assert_true(df_ends_with(words, "2147483647 of another kind"));
}

static void what_the_tool_counts_under_a_new_name_is_of_another_kind(void **state)
{
    (void)state;
    assert_int_equal(df_changes_kind_of("remove"), DF_CHANGES_DESTROY);
    assert_int_equal(df_changes_kind_of("forget"), DF_CHANGES_FORGET);
    assert_int_equal(df_changes_kind_of("action_invocation"), DF_CHANGES_OTHER);
}

static void what_is_no_count_is_refused_and_what_is_absent_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"{'add':-1}", "{'forget':1e300}"};
    struct df_changes c;
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_JSON cJSON *summary = json(bad[i]);
        assert_int_equal(df_changes_read(summary, &c, NULL), -1);
        assert_int_equal(df_changes_total(&c), 0);
    }
    DF_JSON cJSON *old = json("{'add':1,'change':2,'destroy':3}");
    assert_int_equal(df_changes_read(old, &c, NULL), 0);
    assert_int_equal(df_changes_total(&c), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_in_documents_sentences_and_columns),
        cmocka_unit_test(the_three_usual_kinds_are_shown_even_if_nothing_changes),
        cmocka_unit_test(all_kinds_at_once_fit_into_a_sentence),
        cmocka_unit_test(what_the_tool_counts_under_a_new_name_is_of_another_kind),
        cmocka_unit_test(what_is_no_count_is_refused_and_what_is_absent_is_none),
    };
    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
