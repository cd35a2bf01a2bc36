#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/ignore.h"
#include "tests/unit/scratch.h"

static void patterns_match_as_those_of_git(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
        bool is_directory;
        enum df_ignore_word word;
    } cases[] = {
        {"x", "x", false, DF_IGNORE_LEFT_OUT},
        {"x", "a/b/x", true, DF_IGNORE_LEFT_OUT},
        {"x", "xx", false, DF_IGNORE_NOTHING},
        {"/x", "a/x", false, DF_IGNORE_NOTHING},
        {"/x", "x", false, DF_IGNORE_LEFT_OUT},
        {"x/", "x", false, DF_IGNORE_NOTHING},
        {"x/", "a/x", true, DF_IGNORE_LEFT_OUT},
        {"a/x", "a/x", false, DF_IGNORE_LEFT_OUT},
        {"a/x", "b/a/x", false, DF_IGNORE_NOTHING},
        {"*.zip", "a/b.zip", false, DF_IGNORE_LEFT_OUT},
        {"*.zip", "a.zip.d", false, DF_IGNORE_NOTHING},
        {"bazel-*", "bazel-bin", true, DF_IGNORE_LEFT_OUT},
        {"a/*", "a/b/c", false, DF_IGNORE_NOTHING},
        {"a*b*c", "axbxbxc", false, DF_IGNORE_LEFT_OUT},
        {"**/x", "x", false, DF_IGNORE_LEFT_OUT},
        {"**/x", "a/b/x", false, DF_IGNORE_LEFT_OUT},
        {"a/**", "a/b/c", false, DF_IGNORE_LEFT_OUT},
        {"a/**", "a", true, DF_IGNORE_NOTHING},
        {"a/**/d", "a/d", false, DF_IGNORE_LEFT_OUT},
        {"a/**/d", "a/b/c/d", false, DF_IGNORE_LEFT_OUT},
        {"a/**/d", "a/b/c/e", false, DF_IGNORE_NOTHING},
        {"a/**/b/**/c", "a/b/x/b/y/c", false, DF_IGNORE_LEFT_OUT},
        {"?.tf", "a.tf", false, DF_IGNORE_LEFT_OUT},
        {"[a-c].tf", "b.tf", false, DF_IGNORE_LEFT_OUT},
        {"[!a-c].tf", "b.tf", false, DF_IGNORE_NOTHING},
        {"[]x].tf", "].tf", false, DF_IGNORE_LEFT_OUT},
        {"[a", "[a", false, DF_IGNORE_LEFT_OUT},
        {"\\#x", "#x", false, DF_IGNORE_LEFT_OUT},
        {"\\!x", "!x", false, DF_IGNORE_LEFT_OUT},
        {"#x", "#x", false, DF_IGNORE_NOTHING},
        {"\n  \n/\n!\n!/\n", "x", false, DF_IGNORE_NOTHING},
        {"x  \r\n", "x", false, DF_IGNORE_LEFT_OUT},
        {"*\n!x", "x", false, DF_IGNORE_KEPT},
        {"!x\n*", "x", false, DF_IGNORE_LEFT_OUT},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_IGNORE struct df_ignore g = {0};
        assert_int_equal(df_ignore_add(&g, "", cases[i].text, NULL), 0);
        if (df_ignore_of(&g, cases[i].path, cases[i].is_directory) != cases[i].word)
            fail_msg("%s of %s", cases[i].path, cases[i].text);
    }
}

static void a_file_holds_for_its_directory_alone(void **state)
{
    (void)state;
    DF_IGNORE struct df_ignore g = {0};
    assert_int_equal(df_ignore_add(&g, "", "x\n", NULL), 0);
    assert_int_equal(df_ignore_add(&g, "a", "!x\n/y\n", NULL), 0);
    assert_int_equal(df_ignore_of(&g, "a/b/x", false), DF_IGNORE_KEPT);
    assert_int_equal(df_ignore_of(&g, "ab/x", false), DF_IGNORE_LEFT_OUT);
    assert_int_equal(df_ignore_of(&g, "a/y", false), DF_IGNORE_LEFT_OUT);
    assert_int_equal(df_ignore_of(&g, "a/b/y", false), DF_IGNORE_NOTHING);
    assert_int_equal(df_ignore_of(&g, "y", false), DF_IGNORE_NOTHING);
}

static void what_editors_make_is_left_out_unless_a_rule_takes_it_along(void **state)
{
    (void)state;
    static const char *const made[] = {".main.tf.swp", "a/.main.tf.swo", "main.tf~", "#main.tf#",
                                       ".#main.tf",    "a/b/.DS_Store",  "._main.tf"};
    static const char *const kept[] = {"main.tf", ".swp", "a#", "#a", ".terraform.lock.hcl",
                                       "_main.tf"};
    DF_IGNORE struct df_ignore g = {0};
    assert_int_equal(df_ignore_add(&g, "", DF_IGNORE_DEFAULTS, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(made); i++)
        assert_int_equal(df_ignore_of(&g, made[i], false), DF_IGNORE_LEFT_OUT);
    for (size_t i = 0; i < DF_ARRAY_SIZE(kept); i++)
        assert_int_equal(df_ignore_of(&g, kept[i], false), DF_IGNORE_NOTHING);
    assert_int_equal(df_ignore_add(&g, "a", "!*~\n", NULL), 0);
    assert_int_equal(df_ignore_of(&g, "a/x~", false), DF_IGNORE_KEPT);
}

/* Each star could take anything: a matcher that tries all of it would not end. */
static void a_pattern_of_many_stars_takes_no_longer(void **state)
{
    (void)state;
    char stars[2 * 200 + 2], name[256], path[128 * 2];
    for (size_t i = 0; i < 200; i++)
        memcpy(stars + 2 * i, "*a", 2);
    memcpy(stars + 400, "b", 2);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    DF_IGNORE struct df_ignore g = {0};
    assert_int_equal(df_ignore_add(&g, "", stars, NULL), 0);
    assert_int_equal(df_ignore_of(&g, name, false), DF_IGNORE_NOTHING);

    DF_BUF struct df_buf deep = DF_BUF_INIT(1000);
    for (size_t i = 0; i < 60; i++)
        (void)df_buf_adds(&deep, "**/a/");
    (void)df_buf_adds(&deep, "b");
    for (size_t i = 0; i < 127; i++)
        memcpy(path + 2 * i, "a/", 2);
    memcpy(path + 254, "a", 2);
    assert_int_equal(df_ignore_add(&g, "", df_buf_str(&deep), NULL), 0);
    assert_int_equal(df_ignore_of(&g, path, false), DF_IGNORE_NOTHING);
}

static void check_limit(const char *dir, size_t n, const char *line)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_fs_join(dir, DF_IGNORE_FILE);
    DF_IGNORE struct df_ignore g = {0};
    struct df_err err = {0};
    while (text.len < n)
        (void)df_buf_adds(&text, line);
    assert_int_equal(df_fs_write(path, text.data, text.len, 0600, &err), 0);
    DF_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(df_ignore_read(&g, fd, "", &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_string_equal(err.reason, "SourceRefused");
    assert_non_null(strstr(err.message, DF_IGNORE_FILE));
}

static void a_file_beyond_any_is_refused(void **state)
{
    const char *dir = *state;
    check_limit(dir, DF_LIMIT_IGNORE_FILE + 1, "# a line\n");
    check_limit(dir, 2 * DF_LIMIT_IGNORE_RULES + 2, "x\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_those_of_git),
        cmocka_unit_test(a_file_holds_for_its_directory_alone),
        cmocka_unit_test(what_editors_make_is_left_out_unless_a_rule_takes_it_along),
        cmocka_unit_test(a_pattern_of_many_stars_takes_no_longer),
        scratch_test(a_file_beyond_any_is_refused),
    };
    return cmocka_run_group_tests_name("ignore", tests, NULL, NULL);
}
