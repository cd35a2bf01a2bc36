/* The table tests/fixtures/redact/cases.json: what a module prints, and what is shown of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/json/json.h"
#include "common/redact/redact.h"

#define TABLE "tests/fixtures/redact/cases.json"

static struct df_redact_set *set_of(const char *secret)
{
    DF_STRS struct df_strs v = {0};
    struct df_redact_set *set = NULL;
    struct df_err err = {0};
    assert_int_equal(df_strs_add(&v, secret), 0);
    if (df_redact_set_new(&v, &set, &err) < 0)
        fail_msg("%s", err.message);
    return set;
}

static void redact_in_pieces(const struct df_redact_set *set, const char *text, size_t piece,
                             struct df_buf *out)
{
    struct df_redact *r = NULL;
    size_t n = strlen(text);
    assert_int_equal(df_redact_new(set, &r, NULL), 0);
    for (size_t at = 0; at < n; at += piece)
        assert_int_equal(df_redact_feed(r, text + at, n - at < piece ? n - at : piece, out, NULL),
                         0);
    assert_int_equal(df_redact_finish(r, out, NULL), 0);
    df_redact_free(r);
}

static size_t check_row(const cJSON *row, const cJSON *secrets)
{
    static const size_t pieces[] = {1, 3, 7, 64, DF_MIB};
    const char *name = df_json_str(row, "name"), *shown = df_json_str(row, "shown");
    const cJSON *secret = cJSON_GetObjectItemCaseSensitive(secrets, df_json_str(row, "secret"));
    size_t failed = 0;
    struct df_redact_set *set = set_of(secret->valuestring);
    for (size_t i = 0; i < DF_ARRAY_SIZE(pieces); i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
        redact_in_pieces(set, df_json_str(row, "text"), pieces[i], &out);
        if (df_streq(df_buf_str(&out), shown))
            continue;
        print_error("%s, in pieces of %zu:\n%s\ninstead of\n%s\n", name, pieces[i],
                    df_buf_str(&out), shown);
        failed = 1;
    }
    df_redact_set_free(set);
    return failed;
}

static void each_row_of_the_table_is_shown_as_it_says(void **state)
{
    (void)state;
    DF_JSON cJSON *table = NULL;
    struct df_err err = {0};
    if (df_json_load(TABLE, 4 * DF_MIB, &table, &err) < 0)
        fail_msg("%s", err.message);
    const cJSON *row, *rows = df_json_at(table, "rows");
    size_t failed = 0;
    cJSON_ArrayForEach (row, rows)
        failed += check_row(row, df_json_at(table, "secrets"));
    assert_true(cJSON_GetArraySize(rows) > 50);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_table_is_shown_as_it_says),
    };
    return cmocka_run_group_tests_name("redact_cases", tests, NULL, NULL);
}
