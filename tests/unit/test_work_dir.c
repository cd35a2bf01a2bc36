/* The local engine: the steps of an executor work under one path, and never in each other's files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/local_engine.h"

static struct df_engine_step of_net(const char *uid, const char *name)
{
    struct df_engine_step s = step_of(uid, name);
    s.runner.executor = "net";
    return s;
}

/* The text of <root>/<uid>/<name>, without its last newline. */
static char *read_of(const struct fixture *f, const char *uid, const char *name)
{
    DF_FREE char *path = df_strf("%s/%s/%s", f->root, uid, name);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    if (df_fs_read(path, &b, NULL) < 0)
        return strdup("(none)");
    char *text = strdup(df_buf_str(&b));
    text[strcspn(text, "\n")] = '\0';
    return text;
}

#define WHERE "(cd $DIR/work; pwd -P) > $DIR/where; ls $DIR/work > $DIR/seen\n"

static void two_steps_work_under_one_path_and_the_second_finds_it_empty(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    script(f, WHERE "echo of a > $DIR/work/left; exit 0\n");
    create(f, &a);
    (void)await_end(f, &a);
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *first = read_of(f, UID_A, "where"), *second = read_of(f, UID_B, "where");
    DF_FREE char *seen = read_of(f, UID_B, "seen"), *left = read_of(f, UID_A, "work/left");
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "/at/net/work"));
    assert_string_equal(seen, "");
    assert_string_equal(left, "of a");
}

static void steps_of_two_executors_share_nothing(void **state)
{
    struct fixture *f = *state;
    struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    b.runner.executor = "db";
    script(f, WHERE "exit 0\n");
    create(f, &a);
    (void)await_end(f, &a);
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *first = read_of(f, UID_A, "where"), *second = read_of(f, UID_B, "where");
    assert_string_not_equal(first, second);
}

static void a_step_that_still_lives_keeps_the_path(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    script(f, WHERE "echo x > $DIR/ready; wait_for go; cat $DIR/work/mine > $DIR/end\n");
    create(f, &a);
    await_in_dir(f, "ready");
    script(f, WHERE "echo of b > $DIR/work/mine; exit 0\n");
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *first = read_of(f, UID_A, "where"), *second = read_of(f, UID_B, "where");
    assert_string_not_equal(first, second);
    DF_FREE char *mine = df_strf("%s/%s/work/mine", f->root, UID_A);
    DF_FREE char *go = df_strf("%s/%s/go", f->root, UID_A);
    assert_int_equal(df_fs_replace(mine, "of a\n", 5, 0600, NULL), 0);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, &b, NULL), 0);
    assert_int_equal(df_fs_replace(go, "x", 1, 0600, NULL), 0);
    (void)await_end(f, &a);
    DF_FREE char *end = read_of(f, UID_A, "end");
    assert_string_equal(end, "of a");
}

/* Here the script writes its result half a second before it exits. */
static void a_step_with_a_result_gives_the_path_to_the_next_as_soon_as_it_has_exited(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    script(f, WHERE "result 0 Planned; echo x > $DIR/ready; sleep 0.5; exit 0\n");
    create(f, &a);
    await_in_dir(f, "ready");
    script(f, WHERE "exit 0\n");
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *first = read_of(f, UID_A, "where"), *second = read_of(f, UID_B, "where");
    assert_string_equal(first, second);
}

static char *errored_of(struct fixture *f, const struct df_engine_step *s)
{
    char *path = NULL;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(f->e->ops->runner->leftover(f->e, s, "errored.tfstate", &path, NULL), 0);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    free(path);
    return df_buf_take(&b);
}

static void each_step_has_its_own_errored_state(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    static const char body[] = "mkdir -p $DIR/work/source/net; ln -s work/source/net $DIR/module\n"
                               "cp $DIR/errored $DIR/work/source/net/errored.tfstate; exit 1\n";
    DF_FREE char *of_a = df_strf("echo a > $DIR/errored; %s", body);
    DF_FREE char *of_b = df_strf("echo b > $DIR/errored; %s", body);
    script(f, of_a);
    create(f, &a);
    (void)await_end(f, &a);
    script(f, of_b);
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *left_a = errored_of(f, &a), *left_b = errored_of(f, &b);
    assert_string_equal(left_a, "a\n");
    assert_string_equal(left_b, "b\n");
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, &a, NULL), 0);
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, &b, NULL), 0);
    DF_FREE char *kept_a = read_of(f, "failed", "net-1-plan.errored.tfstate");
    DF_FREE char *kept_b = read_of(f, "failed", "net-1-apply.errored.tfstate");
    assert_string_equal(kept_a, "a");
    assert_string_equal(kept_b, "b");
}

static void a_step_that_is_removed_leaves_nothing_under_the_path(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan");
    DF_FREE char *at = df_strf("%s/at/net", f->root);
    script(f, "echo secret > $DIR/work/secret; exit 0\n");
    create(f, &a);
    (void)await_end(f, &a);
    assert_true(df_fs_exists(at));
    assert_int_equal(f->e->ops->runner->step.cleanup(f->e, &a, NULL), 0);
    assert_false(df_fs_exists(at));
}

/* The spawner died between the lines of the change of hands. */
static void what_a_crash_left_half_done_is_finished_by_the_next_step(void **state)
{
    struct fixture *f = *state;
    const struct df_engine_step a = of_net(UID_A, "net-1-plan"), b = of_net(UID_B, "net-1-apply");
    script(f, WHERE "echo of a > $DIR/work/left; exit 0\n");
    create(f, &a);
    (void)await_end(f, &a);
    DF_FREE char *link = df_strf("%s/%s/work", f->root, UID_A);
    assert_int_equal(unlink(link), 0);
    create(f, &b);
    (void)await_end(f, &b);
    DF_FREE char *left = read_of(f, UID_A, "work/left"), *seen = read_of(f, UID_B, "seen");
    assert_string_equal(left, "of a");
    assert_string_equal(seen, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_steps_work_under_one_path_and_the_second_finds_it_empty,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(steps_of_two_executors_share_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_still_lives_keeps_the_path, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_step_with_a_result_gives_the_path_to_the_next_as_soon_as_it_has_exited, setup,
            teardown),
        cmocka_unit_test_setup_teardown(each_step_has_its_own_errored_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_is_removed_leaves_nothing_under_the_path, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_a_crash_left_half_done_is_finished_by_the_next_step,
                                        setup, teardown),
    };
    return cmocka_run_group_tests_name("work_dir", tests, NULL, NULL);
}
