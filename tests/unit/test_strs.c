#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/strs.h"

static void a_vector_is_always_an_argv(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    assert_null(v.items);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(df_strs_addf(&v, "item %d", i), 0);
        assert_null(v.items[v.len]);
    }
    assert_int_equal(v.len, 100);
    assert_string_equal(v.items[0], "item 0");
    assert_string_equal(v.items[99], "item 99");
    assert_int_equal(df_strs_check(&v, NULL), 0);
}

static void items_are_copies(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    char text[] = "before";
    assert_int_equal(df_strs_add(&v, text), 0);
    text[0] = 'X';
    assert_string_equal(v.items[0], "before");
    assert_true(df_strs_has(&v, "before"));
    assert_false(df_strs_has(&v, "befor"));
    assert_false(df_strs_has(&v, "Xefore"));
}

static void no_memory_sticks(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    struct df_err err = {0};
    assert_int_equal(df_strs_add(&v, "kept"), 0);
    assert_int_equal(df_strs_take(&v, NULL), -1);
    assert_int_equal(df_strs_add(&v, "late"), -1);
    assert_int_equal(df_strs_take(&v, strdup("owned")), -1);
    assert_int_equal(df_strs_check(&v, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(v.len, 1);
    df_strs_free(&v);
    assert_int_equal(df_strs_check(&v, NULL), 0);
    assert_int_equal(df_strs_add(&v, NULL), -1);
    assert_int_equal(df_strs_check(&v, NULL), -1);
}

static void an_environment_has_each_name_once(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    assert_null(df_strs_get_env(&v, "A"));
    assert_int_equal(df_strs_set_env(&v, "A", "1"), 0);
    assert_int_equal(df_strs_set_env(&v, "AB", "2"), 0);
    assert_int_equal(df_strs_set_env(&v, "A", "3=x"), 0);
    assert_int_equal(v.len, 2);
    assert_string_equal(df_strs_get_env(&v, "A"), "3=x");
    assert_string_equal(df_strs_get_env(&v, "AB"), "2");
    assert_null(df_strs_get_env(&v, "B"));
    assert_int_equal(df_strs_set_env(&v, "A", ""), 0);
    assert_string_equal(df_strs_get_env(&v, "A"), "");
    assert_string_equal(v.items[0], "A=");
}

static void items_are_joined(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    DF_FREE char *none = df_strs_join(&v, ", ");
    assert_string_equal(none, "");
    assert_int_equal(df_strs_add(&v, "a"), 0);
    DF_FREE char *one = df_strs_join(&v, ", ");
    assert_string_equal(one, "a");
    assert_int_equal(df_strs_add(&v, ""), 0);
    assert_int_equal(df_strs_add(&v, "c"), 0);
    DF_FREE char *three = df_strs_join(&v, ", ");
    assert_string_equal(three, "a, , c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_is_always_an_argv),
        cmocka_unit_test(items_are_copies),
        cmocka_unit_test(no_memory_sticks),
        cmocka_unit_test(an_environment_has_each_name_once),
        cmocka_unit_test(items_are_joined),
    };
    return cmocka_run_group_tests_name("strs", tests, NULL, NULL);
}
