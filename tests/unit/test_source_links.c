#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/archive/tree.h"
#include "common/base/limits.h"
#include "tests/unit/source_words.h"

/* ---- links that are followed, and what is ignored ---- */

static void fetch_followed(void)
{
    struct df_source_result r = {0};
    struct df_err err = {0};
    if (fetch_with(NULL, true, NULL, &r, &err) < 0)
        fail_msg("%s", err.message);
    df_source_result_free(&r);
}

static bool is_link(const char *name)
{
    struct stat st;
    DF_FREE char *path = at(name);
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void links_out_of_a_laptop_s_directory_are_replaced_by_what_they_lead_to(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("shared/net/x.tf", "x");
    put("shared/.terraform/y", "");
    put("shared/a.tfstate", "");
    put("else/far.json", "{}");
    put_link("shared/inner", "net/x.tf");
    put_link("shared/on", "../else");
    put_link("module/inside", "main.tf");
    put_link("module/file", "../else/far.json");
    put_link("module/shared", "../shared");
    put_link("module/gone", "/nonexistent/store/x");
    put_link("module/null", "/dev/null");
    put_link("module/kernel", "/proc/self");
    put_link("module/result", "../else");
    put_link("module/bazel-bin", "../else");
    fetch_followed();
    assert_true(is_link("checkout/inside") && is_link("checkout/shared/inner"));
    assert_true(has("checkout/file") && !is_link("checkout/file"));
    assert_true(has("checkout/shared/net/x.tf") && has("checkout/shared/on/far.json"));
    assert_false(is_link("checkout/shared") || is_link("checkout/shared/on"));
    static const char *const none[] = {
        "gone", "null", "kernel", "result", "bazel-bin", "shared/.terraform", "shared/a.tfstate"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(none); i++) {
        DF_FREE char *name = df_strf("checkout/%s", none[i]);
        if (has(name) || is_link(name))
            fail_msg("%s", name);
    }
}

static void a_result_of_a_build_comes_along_if_it_is_asked_for(void **state)
{
    (void)state;
    put("else/lambda.zip", "z");
    put("module/.terraformignore", "!result\n");
    put_link("module/result", "../else");
    fetch_followed();
    assert_true(has("checkout/result/lambda.zip"));
}

static void check_link_refused(const char *target, const struct df_wall *hidden, const char *word)
{
    struct df_source_result r = {0};
    struct df_err err = {0};
    put_link("module/sub/link", target);
    assert_int_equal(fetch_with(NULL, true, hidden, &r, &err), -1);
    assert_string_equal(err.reason, "SourceRefused");
    if (!strstr(err.message, word) || !strstr(err.message, ".terraformignore"))
        fail_msg("%s: %s", target, err.message);
    assert_false(has("checkout/main.tf"));
    DF_FREE char *link = at("module/sub/link"), *ignore = at("module/.terraformignore");
    put("module/.terraformignore", "link\n");
    if (fetch_with(NULL, true, hidden, &r, &err) < 0)
        fail_msg("%s: %s", target, err.message);
    df_source_result_free(&r);
    DF_FREE char *checkout = at("checkout");
    assert_int_equal(df_tree_empty(checkout, NULL), 0);
    assert_int_equal(unlink(link) + unlink(ignore), 0);
}

static void a_link_to_what_is_hidden_or_in_a_circle_is_refused(void **state)
{
    (void)state;
    DF_WALL struct df_wall hidden = {0};
    DF_FREE char *data = at("data"), *above = at(""), *module = at("module");
    put("module/main.tf", "");
    put("module/sub/x.tf", "");
    put("data/key", "k");
    assert_int_equal(df_wall_add(&hidden, DF_WALL_HIDDEN, data, NULL), 0);
    check_link_refused("../../data", &hidden, "no step may see");
    check_link_refused("../../data/key", &hidden, "no step may see");
    check_link_refused(above, &hidden, "no step may see");
    put_link("data/back", "../module");
    check_link_refused("../../data", NULL, "leads to what it is in");
    check_link_refused(module, NULL, "leads to what it is in");
}

static void make_chain(void)
{
    for (int i = 1; i <= DF_LIMIT_FOLLOWED_LINKS + 2; i++) {
        DF_FREE char *file = df_strf("chain%d/x", i), *link = df_strf("chain%d/next", i);
        DF_FREE char *next = df_strf("../chain%d", i + 1);
        put(file, "");
        put_link(link, next);
    }
}

static void links_lead_on_through_few_others(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("module/sub/x.tf", "");
    make_chain();
    check_link_refused("../../chain1", NULL, "more than 8 links");
    put_link("module/link", "../chain4");
    fetch_followed();
    assert_true(has("checkout/link/next/next/x"));
}

static void what_the_ignore_file_names_is_left_out_wherever_the_source_goes(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("module/.terraformignore", "node_modules/\n/docs\n*.fifo\nlink\n!keep/node_modules/\n");
    put("module/node_modules/x", "");
    put("module/a/node_modules/y", "");
    put("module/keep/node_modules/z", "");
    put("module/docs/x", "");
    put("module/a/docs/x", "");
    put("module/a/.terraformignore", "own\n");
    put("module/a/own", "");
    put("module/own", "");
    put_link("module/link", "/etc/passwd");
    DF_FREE char *fifo = at("module/a.fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct df_source_result r = {0};
    struct df_err err = {0};
    if (fetch_module(NULL, &r, &err) < 0)
        fail_msg("%s", err.message);
    df_source_result_free(&r);
    static const char *const none[] = {"node_modules", "a/node_modules", "docs",
                                       "a/own",        "link",           "a.fifo"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(none); i++) {
        DF_FREE char *name = df_strf("checkout/%s", none[i]);
        if (has(name) || is_link(name))
            fail_msg("%s", name);
    }
    assert_true(has("checkout/keep/node_modules/z") && has("checkout/a/docs/x") &&
                has("checkout/own"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_top, remove_top)
    const struct CMUnitTest tests[] = {
        TEST(links_out_of_a_laptop_s_directory_are_replaced_by_what_they_lead_to),
        TEST(a_result_of_a_build_comes_along_if_it_is_asked_for),
        TEST(a_link_to_what_is_hidden_or_in_a_circle_is_refused),
        TEST(links_lead_on_through_few_others),
        TEST(what_the_ignore_file_names_is_left_out_wherever_the_source_goes),
    };
    return cmocka_run_group_tests_name("source links", tests, NULL, NULL);
}
