/* The source of a plan, for its apply in the same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "runner/source/kept.h"
#include "tests/unit/scratch.h"

static void put(const char *path, const char *text)
{
    DF_FREE char *dir = strdup(path);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(df_fs_mkdirs(dir, 0755, NULL), 0);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0644, NULL), 0);
}

/* A checkout with a module in the folder `net`. */
struct checkout {
    char *path;
    struct df_source_result source;
    struct df_kept_source kept;
};

static void fetch(struct checkout *c)
{
    put("checkout/.git/HEAD", "ref");
    put("checkout/shared/module/.git/config", "[core]");
    put("checkout/net/main.tf", "resource");
    put("checkout/net/.terraform.lock.hcl", "lock");
    put("checkout/shared/a.tf", "a");
    *c = (struct checkout){.path = realpath("checkout", NULL)};
    c->source.module_dir = realpath("checkout/net", NULL);
    assert_int_equal(df_tree_digest(c->path, c->source.tree_digest, NULL), 0);
    assert_int_equal(df_kept_source_note(c->path, &c->source, &c->kept, NULL), 0);
}

static bool restore(struct checkout *c)
{
    bool same = false;
    struct df_err err = {0};
    if (df_kept_source_restore(c->path, &c->source, &c->kept, &same, &err) < 0)
        fail_msg("%s", err.message);
    return same;
}

static void drop(struct checkout *c)
{
    df_source_result_free(&c->source);
    df_kept_source_free(&c->kept);
    free(c->path);
}

static void what_the_plan_added_goes(void **state)
{
    (void)state;
    struct checkout c;
    fetch(&c);
    put("checkout/net/.terraform/providers/x", "provider");
    put("checkout/net/.terraform/terraform.tfstate", "the note of the backend");
    put("checkout/net/.terraform/modules/m/main.tf", "module");
    put("checkout/net/.terraform.lock.hcl", "lock, and what init added");
    put("checkout/net/zzzz_dayfly_override.tf.json", "{}");
    put("checkout/net/made/by/the/plan.zip", "zip");
    put("checkout/shared/.terraform/x", "x");
    put("checkout/.git/hooks/post-checkout", "#!/bin/sh");
    put("checkout/z", "behind all others");
    assert_true(restore(&c));
    assert_false(df_fs_exists("checkout/net/.terraform"));
    assert_true(df_fs_exists("checkout/.git/HEAD"));
    assert_true(df_fs_exists("checkout/shared/module/.git/config"));
    assert_false(df_fs_exists("checkout/.git/hooks"));
    assert_false(df_fs_exists("checkout/net/zzzz_dayfly_override.tf.json"));
    assert_false(df_fs_exists("checkout/net/made"));
    assert_false(df_fs_exists("checkout/shared/.terraform"));
    assert_false(df_fs_exists("checkout/z"));
    assert_true(restore(&c)); /* again */
    drop(&c);
}

static void a_lock_file_that_was_not_there_goes(void **state)
{
    (void)state;
    put("checkout/main.tf", "resource");
    struct checkout c = {.path = realpath("checkout", NULL)};
    c.source.module_dir = strdup(c.path); /* the module is the whole checkout */
    assert_int_equal(df_tree_digest(c.path, c.source.tree_digest, NULL), 0);
    assert_int_equal(df_kept_source_note(c.path, &c.source, &c.kept, NULL), 0);
    put("checkout/.terraform.lock.hcl", "lock");
    assert_true(restore(&c));
    assert_false(df_fs_exists("checkout/.terraform.lock.hcl"));
    drop(&c);
}

static void append(void)
{
    put("checkout/net/main.tf", "resource and more");
}

static void take_away(void)
{
    assert_int_equal(unlink("checkout/shared/a.tf"), 0);
}

static void make_executable(void)
{
    assert_int_equal(chmod("checkout/net/main.tf", 0755), 0);
}

static void lead_elsewhere(void)
{
    assert_int_equal(unlink("checkout/net/main.tf"), 0);
    assert_int_equal(symlink("../shared/a.tf", "checkout/net/main.tf"), 0);
}

static void put_a_file_for_a_directory(void)
{
    assert_int_equal(df_fs_remove_tree("checkout/shared", NULL), 0);
    put("checkout/shared", "x");
}

static void name_a_program_for_git(void)
{
    put("checkout/shared/module/.git/config", "[core]\n\tfsmonitor = /tmp/evil");
}

static void take_git_away(void)
{
    assert_int_equal(df_fs_remove_tree("checkout/.git", NULL), 0);
}

static void a_source_that_was_changed_is_another_one(void **state)
{
    (void)state;
    static void (*const changes[])(void) = {append,
                                            take_away,
                                            make_executable,
                                            lead_elsewhere,
                                            put_a_file_for_a_directory,
                                            name_a_program_for_git,
                                            take_git_away};
    for (size_t i = 0; i < DF_ARRAY_SIZE(changes); i++) {
        struct checkout c;
        fetch(&c);
        changes[i]();
        if (restore(&c))
            fail_msg("change %zu was not noticed", i);
        drop(&c);
        assert_int_equal(df_fs_remove_tree("checkout", NULL), 0);
    }
}

static int enter(void **state)
{
    return enter_scratch(state) < 0 ? -1 : chdir(*state);
}

static int leave(void **state)
{
    return chdir("/") < 0 ? -1 : leave_scratch(state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_plan_added_goes),
        TEST(a_lock_file_that_was_not_there_goes),
        TEST(a_source_that_was_changed_is_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
