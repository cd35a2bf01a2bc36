/* What followers of all steps keep: which were written last, and how far they are with each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/journal/changes.h"
#include "spawner/journal/marks.h"

static struct df_changes changes;

static int setup(void **state)
{
    (void)state;
    changes = (struct df_changes){0};
    df_changes_init(&changes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    df_changes_free(&changes);
    return 0;
}

static void write_step(int n)
{
    char name[32], version[32];
    (void)snprintf(name, sizeof(name), "step-%d", n);
    (void)snprintf(version, sizeof(version), "%d", 1000 + n);
    const struct df_store_event event = {n % 2 ? DF_CHANGE_ADDED : DF_CHANGE_MODIFIED,
                                         DF_KIND_TASK_ACTION, name, version};
    df_changes_add(&changes, &event);
}

static void changes_come_in_the_order_of_the_writes(void **state)
{
    (void)state;
    struct df_changed change;
    char version[64];
    assert_int_equal(df_changes_last(&changes, version), 0);
    assert_string_equal(version, "0");
    assert_int_equal(df_changes_get(&changes, 1, &change), 0);
    for (int i = 1; i <= 3; i++)
        write_step(i);
    assert_int_equal(df_changes_last(&changes, version), 3);
    assert_string_equal(version, "1003");
    for (uint64_t i = 1; i <= 3; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "step-%d", (int)i);
        assert_int_equal(df_changes_get(&changes, i, &change), 1);
        assert_string_equal(change.name, name);
        assert_int_equal(change.is_new, i % 2);
    }
    assert_int_equal(df_changes_get(&changes, 4, &change), 0);
}

static void who_is_too_slow_is_told_that_something_is_forgotten(void **state)
{
    (void)state;
    struct df_changed change;
    for (int i = 1; i <= DF_CHANGES + 1; i++)
        write_step(i);
    assert_int_equal(df_changes_get(&changes, 1, &change), -1);
    assert_int_equal(df_changes_get(&changes, 2, &change), 1);
    assert_string_equal(change.name, "step-2");
    assert_int_equal(df_changes_get(&changes, DF_CHANGES + 1, &change), 1);
}

static void a_mark_is_of_one_document_not_of_its_name(void **state)
{
    (void)state;
    struct df_marks marks = {0};
    assert_int_equal(df_marks_get(&marks, "a", "uid-1", 7), 7);
    assert_int_equal(df_marks_set(&marks, "a", "uid-1", 1, NULL), 0);
    assert_int_equal(df_marks_set(&marks, "b", "uid-2", 2, NULL), 0);
    assert_int_equal(df_marks_set(&marks, "a", "uid-1", 3, NULL), 0);
    assert_int_equal(df_marks_get(&marks, "a", "uid-1", 0), 3);
    assert_int_equal(df_marks_get(&marks, "a", "uid-9", 0), 0); /* made anew */
    assert_int_equal(df_marks_set(&marks, "a", "uid-9", 4, NULL), 0);
    assert_int_equal(df_marks_get(&marks, "a", "uid-9", 0), 4);
    df_marks_drop(&marks, "a");
    df_marks_drop(&marks, "never there");
    assert_int_equal(df_marks_get(&marks, "a", "uid-9", 0), 0);
    assert_int_equal(df_marks_get(&marks, "b", "uid-2", 0), 2);
    df_marks_free(&marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_come_in_the_order_of_the_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_too_slow_is_told_that_something_is_forgotten, setup,
                                        teardown),
        cmocka_unit_test(a_mark_is_of_one_document_not_of_its_name),
    };
    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
