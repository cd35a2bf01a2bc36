#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/tofu/range.h"

static struct df_range parse(const char *text)
{
    struct df_range r;
    struct df_err err = {0};
    if (df_range_parse(text, &r, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return r;
}

static bool allows(const struct df_range *r, const char *version)
{
    struct df_version v;
    assert_int_equal(df_version_parse(version, &v, NULL), 0);
    return df_range_allows(r, &v);
}

/* Each list of versions begins with those that are allowed; "/" begins those that are not. */
static void ranges_mean_what_npm_means(void **state)
{
    (void)state;
    static const struct {
        const char *range;
        const char *versions[9];
    } cases[] = {
        {"1.5.7", {"1.5.7", "/", "1.5.8", "1.5.6"}},
        {"=1.5.7", {"1.5.7", "/", "1.5.8"}},
        {"v1.5.7", {"1.5.7", "/", "1.5.8"}},
        {"1.5.x", {"1.5.0", "1.5.7", "/", "1.6.0", "1.4.9", "1.5.1-rc1"}},
        {"1.5", {"1.5.0", "1.5.7", "/", "1.6.0", "1.4.9"}},
        {"1.x", {"1.0.0", "1.99.0", "/", "2.0.0", "0.15.5"}},
        {"1.*.*", {"1.0.0", "/", "2.0.0"}},
        {"*", {"0.1.0", "9.9.9", "/", "1.0.0-rc1"}},
        {"", {"0.1.0", "/", "1.0.0-rc1"}},
        {"latest", {"1.12.6", "/", "1.13.0-beta1"}},
        {"~> 1.6", {"1.6.0", "1.6.9", "/", "1.7.0", "1.5.9"}},
        {"~>1.6.3", {"1.6.3", "1.6.9", "/", "1.7.0", "1.6.2"}},
        {"~1.6", {"1.6.0", "/", "1.7.0"}},
        {"~1", {"1.0.0", "1.9.0", "/", "2.0.0"}},
        {"^1.2", {"1.2.0", "1.99.0", "/", "2.0.0", "1.1.9"}},
        {"^1.2.3", {"1.2.3", "/", "1.2.2", "2.0.0"}},
        {"^0.2.3", {"0.2.3", "0.2.9", "/", "0.3.0"}},
        {"^0.0.3", {"0.0.3", "/", "0.0.4"}},
        {"^0.0", {"0.0.9", "/", "0.1.0"}},
        {"^0.x", {"0.9.0", "/", "1.0.0"}},
        {">=1.5 <1.8", {"1.5.0", "1.7.9", "/", "1.8.0", "1.4.9"}},
        {">= 1.5, < 1.8", {"1.5.0", "1.7.9", "/", "1.8.0"}},
        {">1.5", {"1.6.0", "/", "1.5.9"}},
        {">1.5.0", {"1.5.1", "/", "1.5.0"}},
        {"<=1.5", {"1.5.9", "/", "1.6.0"}},
        {"<=1.5.2", {"1.5.2", "/", "1.5.3"}},
        {"<1.5", {"1.4.9", "/", "1.5.0"}},
        {">=1.5 !=1.5.3", {"1.5.2", "1.6.0", "/", "1.5.3"}},
        {"1.2.3 - 1.4", {"1.2.3", "1.4.9", "/", "1.5.0", "1.2.2"}},
        {"1.2 - 1.4.1", {"1.2.0", "1.4.1", "/", "1.4.2"}},
        {"1.x || 2.x", {"1.3.0", "2.9.0", "/", "3.0.0", "0.9.0"}},
        {"1.5.7||>=1.9 <1.11", {"1.5.7", "1.10.0", "/", "1.8.0", "1.11.0"}},
        {"1.8.0-rc1", {"1.8.0-rc1", "/", "1.8.0"}},
        {">=1.8.0-rc1", {"1.8.0-rc2", "1.8.0", "1.9.0", "/", "1.9.0-rc1"}},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_range r = parse(cases[i].range);
        bool expected = true;
        for (size_t k = 0; cases[i].versions[k]; k++) {
            const char *v = cases[i].versions[k];
            if (df_streq(v, "/"))
                expected = false;
            else if (allows(&r, v) != expected)
                fail_msg("%s: %s is %s", cases[i].range, v, expected ? "refused" : "allowed");
        }
    }
}

static void what_is_no_range_is_refused_with_its_text(void **state)
{
    (void)state;
    static const char *const cases[] = {"one",
                                        "1.x.3",
                                        "1.2.3.4",
                                        ">=",
                                        ">*",
                                        "<x",
                                        "1.2 -  - 1.3",
                                        "||>",
                                        "1.2.3 - ",
                                        "1.2.3 -  || 1.x",
                                        "1..2",
                                        "1.2.",
                                        ">=1.5 <",
                                        "${VERSION}",
                                        "1|2",
                                        "!=*",
                                        "1||2||3||4||5||6||7||8||9",
                                        ">1 >1 >1 >1 >1 >1 >1 >1 >1"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_range r;
        struct df_err err = {0};
        if (df_range_parse(cases[i], &r, &err) == 0)
            fail_msg("taken: %s", cases[i]);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_non_null(strstr(err.message, cases[i]));
    }
}

/* ---- the examples of docs/terrakube.md ---- */

/* Copies what is between the next two ticks of a row's cell, without the '\\' before a '|', and
 * returns what is behind them; NULL at the end of the cell. */
static const char *next_quoted(const char *p, char *out, size_t size)
{
    size_t n = 0;
    p += strspn(p, " ,");
    if (*p++ != '`')
        return NULL;
    for (; *p != '`'; p++) {
        assert_true(n + 1 < size && *p && *p != '\n');
        if (*p != '\\')
            out[n++] = *p;
    }
    out[n] = '\0';
    return p + 1;
}

/* The begin of the row's cell number i, 0 for the first. */
static const char *cell_of(const char *row, int i)
{
    const char *p = row + 1;
    for (; i >= 0 && *p != '\n'; p++)
        i -= *p == '|' && p[-1] != '\\';
    return p - 1 + strspn(p - 1, "| ");
}

static size_t check_versions(const char *text, const char *cell, bool expected)
{
    struct df_range r = parse(text);
    char version[DF_VERSION_TEXT];
    size_t count = 0;
    for (const char *p = cell; strchr("0123456789", *p); count++) {
        size_t n = strcspn(p, ", ");
        assert_true(n < sizeof version);
        memcpy(version, p, n);
        version[n] = '\0';
        if (allows(&r, version) != expected)
            fail_msg("%s: %s is %s", text, version, expected ? "refused" : "allowed");
        p += n;
        p += strspn(p, ", ");
    }
    return count;
}

/* Calls check for each text between ticks in the first cells of the table below the heading row. */
static size_t each_example(const char *page, const char *heading,
                           void (*check)(const char *text, const char *row))
{
    size_t count = 0;
    const char *row = strstr(page, heading);
    assert_non_null(row);
    row = strchr(strchr(row, '\n') + 1, '\n') + 1; /* behind "|---|" */
    for (; *row == '|'; row = strchr(row, '\n') + 1) {
        char text[64];
        const char *p = cell_of(row, -1);
        while ((p = next_quoted(p, text, sizeof text))) {
            check(text, row);
            count++;
        }
    }
    return count;
}

static void assert_taken(const char *text, const char *row)
{
    assert_true(check_versions(text, cell_of(row, 0), true) > 0);
    assert_true(check_versions(text, cell_of(row, 1), false) > 0);
}

static void assert_refused(const char *text, const char *row)
{
    struct df_range r;
    if (df_range_parse(text, &r, NULL) == 0)
        fail_msg("taken: %s of %.40s", text, row);
}

static void each_documented_range_takes_what_its_row_says(void **state)
{
    (void)state;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read("docs/terrakube.md", &page, NULL), 0);
    assert_true(each_example(df_buf_str(&page), "| range | takes |", assert_taken) > 20);
    assert_true(each_example(df_buf_str(&page), "| refused | why |", assert_refused) > 8);
}

static void only_a_whole_version_is_exact(void **state)
{
    (void)state;
    struct df_range r = parse("1.12.6");
    char text[DF_VERSION_TEXT];
    assert_non_null(df_range_exact(&r));
    assert_string_equal(df_version_format(df_range_exact(&r), text), "1.12.6");
    static const char *const others[] = {"1.12", "1.12.x", "*", "~1.12.6", "1.12.6 || 1.12.7"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        r = parse(others[i]);
        assert_null(df_range_exact(&r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_mean_what_npm_means),
        cmocka_unit_test(what_is_no_range_is_refused_with_its_text),
        cmocka_unit_test(each_documented_range_takes_what_its_row_says),
        cmocka_unit_test(only_a_whole_version_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
