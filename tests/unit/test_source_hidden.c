/* Sources of this machine that are hidden, or lead to what is hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/process/process.h"
#include "tests/unit/source_words.h"

/* Fetches top/<name>; what the wall hides is top/data. */
static int fetch_beside_data(const char *name, const char *kind, struct df_err *err)
{
    DF_FREE char *url = df_strf("file://%s/%s", top, name), *data = at("data");
    DF_FREE char *checkout = at("checkout"), *private_dir = at("private");
    DF_WALL struct df_wall hidden = {0};
    DF_JSON cJSON *source = cJSON_CreateObject();
    struct df_source_result r = {0};
    assert_int_equal(df_fs_mkdirs(checkout, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(private_dir, 0700, NULL), 0);
    assert_int_equal(df_wall_add(&hidden, DF_WALL_HIDDEN, data, NULL), 0);
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", kind, NULL), 0);
    if (df_streq(kind, "git"))
        assert_int_equal(df_json_add_str(source, "branch", "main", NULL), 0);
    const struct df_source_request q = {.source = source,
                                        .checkout = checkout,
                                        .private_dir = private_dir,
                                        .log_fd = -1,
                                        .hidden = &hidden,
                                        .git_wall = &hidden};
    int result = df_source_fetch(&q, &r, err);
    df_source_result_free(&r);
    return result;
}

static void no_way_leads_to_a_hidden_directory(void **state)
{
    (void)state;
    DF_FREE char *data = at("data");
    put("data/key", "secret");
    put("data/steps/1/main.tf", "");
    put("mounted/main.tf", "");
    put("mounted_up/main.tf", "");
    put_link("link", data);
    put_link("archive", "data/key");
    put_link("mounted/..data", data);
    put_link("mounted_up/..data", "../data/steps/1");
    static const struct {
        const char *name, *kind;
    } cases[] = {
        {"data", "directory"},
        {"%64ata", "directory"}, /* is decoded, because there is nothing of this name */
        {"data/steps/1", "directory"},
        {"", "directory"},
        {"link", "directory"},
        {"link/steps/../steps", "directory"},
        {"mounted", "directory"},
        {"mounted_up", "directory"},
        {"data/key", "archive"},
        {"archive", "archive"},
        {"data/steps/1", "git"},
        {"link/steps/1", "git"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        if (fetch_beside_data(cases[i].name, cases[i].kind, &err) == 0 ||
            !df_streq(err.reason, "SourceRefused") || has("checkout/key") ||
            has("checkout/main.tf"))
            fail_msg("%s %s: %s", cases[i].name, cases[i].kind, err.message);
    }
}

static void sh(const char *script)
{
    const char *const argv[] = {"sh", "-ec", script, NULL};
    struct df_process_options o =
        DF_PROCESS_OPTIONS(argv, ((const char *const[]){"PATH=/usr/local/bin:/usr/bin:/bin",
                                                        "GIT_CONFIG_GLOBAL=/dev/null", NULL}));
    int code = -1;
    o.cwd = top;
    assert_int_equal(df_process_run(&o, -1, NULL, NULL, &code, NULL), 0);
    assert_int_equal(code, 0);
}

/* git follows what a repository names, outside of the wall of the module's code. */
static void a_repository_that_leads_to_a_hidden_one_has_nothing_of_it(void **state)
{
    (void)state;
    struct df_err err = {0};
    put("data/steps/1/main.tf", "secret");
    sh("cd data/steps/1; git init -q -b main; git add .; "
       "git -c user.name=a -c user.email=a@b commit -q -m 1; "
       "mkdir ../../../own ../../../other; echo 'gitdir: ../data/steps/1/.git' >../../../own/.git; "
       "cp -R . ../../../open; cd ../../../other; echo 'gitdir: ../open/.git' >.git");
    if (fetch_beside_data("other", "git", &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *checkout = at("checkout");
    assert_true(has("checkout/main.tf"));
    assert_int_equal(df_fs_remove_tree(checkout, NULL), 0);
    assert_int_equal(fetch_beside_data("own", "git", &err), -1);
    assert_string_equal(err.reason, "SourceFailed");
    assert_false(has("checkout/main.tf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_way_leads_to_a_hidden_directory, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_repository_that_leads_to_a_hidden_one_has_nothing_of_it,
                                        make_top, remove_top),
    };
    return cmocka_run_group_tests_name("hidden sources", tests, NULL, NULL);
}
