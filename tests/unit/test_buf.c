#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"

static void a_buffer_keeps_what_was_added(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    assert_int_equal(df_buf_adds(&b, "one "), 0);
    assert_int_equal(df_buf_addf(&b, "%d", 2), 0);
    assert_string_equal(df_buf_str(&b), "one 2");
}

static void a_buffer_never_grows_past_its_cap_and_says_so(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(5);
    assert_int_equal(df_buf_adds(&b, "12345"), 0);
    assert_int_equal(df_buf_addc(&b, '6'), -1);
    struct df_err err = {0};
    assert_int_equal(df_buf_check(&b, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_string_equal(err.message, "more than 5 bytes");
}

static void the_first_failure_of_a_buffer_sticks(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(3);
    assert_int_equal(df_buf_adds(&b, "1234"), -1);
    assert_int_equal(df_buf_adds(&b, "1"), -1);
    assert_null(df_buf_take(&b));
}

static void adding_a_missing_string_counts_as_no_memory(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(3);
    struct df_err err = {0};
    assert_int_equal(df_buf_adds(&b, NULL), -1);
    assert_int_equal(df_buf_adds(&b, "1234"), -1);
    assert_int_equal(df_buf_check(&b, &err), -1);
    assert_string_equal(err.message, "out of memory");
}

static void taking_an_empty_buffer_yields_an_empty_string(void **state)
{
    (void)state;
    struct df_buf b = DF_BUF_INIT(3);
    DF_FREE char *s = df_buf_take(&b);
    assert_string_equal(s, "");
}

static void bytes_are_consumed_from_the_front(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(10);
    df_buf_consume(&b, 0);
    assert_int_equal(df_buf_add(&b, "a\0bcd", 5), 0);
    df_buf_consume(&b, 2);
    assert_string_equal(df_buf_str(&b), "bcd");
    df_buf_consume(&b, 3);
    assert_int_equal(b.len, 0);
    assert_string_equal(df_buf_str(&b), "");
}

static void clearing_forgets_content_and_failure(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(3);
    assert_int_equal(df_buf_adds(&b, "ab"), 0);
    assert_int_equal(df_buf_addf(&b, "%d", 12), -1);
    df_buf_clear(&b);
    assert_int_equal(df_buf_check(&b, NULL), 0);
    assert_int_equal(df_buf_adds(&b, "xyz"), 0);
    assert_string_equal(df_buf_str(&b), "xyz");
}

static void reserved_room_is_within_the_cap(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    char *to = df_buf_reserve(&b, 100);
    assert_non_null(to);
    memset(to, 'x', 100);
    b.len = 100;
    assert_null(df_buf_reserve(&b, 1));
    assert_null(df_buf_reserve(&b, SIZE_MAX));
}

static void wiping_leaves_an_empty_buffer_with_the_same_cap(void **state)
{
    (void)state;
    struct df_buf b = DF_BUF_INIT(10);
    df_buf_wipe(&b);
    assert_int_equal(df_buf_adds(&b, "secret"), 0);
    df_buf_wipe(&b);
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 10);
}

static void a_kept_string_is_replaced_by_a_copy_or_by_nothing(void **state)
{
    (void)state;
    DF_FREE char *kept = NULL;
    char value[] = "first";
    assert_int_equal(df_str_set(&kept, value, NULL), 0);
    value[0] = 'F';
    assert_string_equal(kept, "first");
    assert_int_equal(df_str_set(&kept, kept, NULL), 0);
    assert_string_equal(kept, "first");
    assert_int_equal(df_str_set(&kept, NULL, NULL), 0);
    assert_null(kept);
}

/* test_buf is linked with --wrap=free: what memory held when it was given back is seen here. */
static const char *watched;
static char first_byte;

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    if (p && p == watched)
        first_byte = *watched;
    __real_free(p);
}

static void a_string_that_is_replaced_is_wiped(void **state)
{
    (void)state;
    DF_FREE char *token = strdup("s3cret");
    watched = token;
    first_byte = 'x';
    assert_int_equal(df_str_set(&token, "another", NULL), 0);
    watched = NULL;
    assert_int_equal(first_byte, '\0');
    assert_string_equal(token, "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_keeps_what_was_added),
        cmocka_unit_test(a_buffer_never_grows_past_its_cap_and_says_so),
        cmocka_unit_test(the_first_failure_of_a_buffer_sticks),
        cmocka_unit_test(adding_a_missing_string_counts_as_no_memory),
        cmocka_unit_test(taking_an_empty_buffer_yields_an_empty_string),
        cmocka_unit_test(bytes_are_consumed_from_the_front),
        cmocka_unit_test(clearing_forgets_content_and_failure),
        cmocka_unit_test(reserved_room_is_within_the_cap),
        cmocka_unit_test(a_kept_string_is_replaced_by_a_copy_or_by_nothing),
        cmocka_unit_test(a_string_that_is_replaced_is_wiped),
        cmocka_unit_test(wiping_leaves_an_empty_buffer_with_the_same_cap),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
