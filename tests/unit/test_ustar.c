/* Headers of tar archives: what is printed is parsed, by us and by tar, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/archive/ustar.h"

static void a_header_is_what_was_printed(void **state)
{
    (void)state;
    static const int64_t sizes[] = {
        0, 1, 512, (INT64_C(1) << 33) - 1, INT64_C(1) << 33, INT64_MAX / 2};
    static const char *const names[] = {
        "a", "blobs/data/logs/x.log",
        "a/"
        "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678901234567890123456789/b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(sizes); i++) {
        for (size_t k = 0; k < DF_ARRAY_SIZE(names); k++) {
            struct df_ustar h = {.size = sizes[i]}, got = {0};
            char block[DF_USTAR_BLOCK];
            bool end = true;
            df_copy(h.name, sizeof(h.name), names[k]);
            assert_int_equal(df_ustar_print(&h, 1700000000, block, NULL), 0);
            assert_int_equal(df_ustar_parse(block, &got, &end, NULL), 0);
            assert_false(end);
            assert_string_equal(got.name, names[k]);
            assert_true(got.size == sizes[i]);
        }
    }
}

static void a_name_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_ustar h = {.size = 1};
    char block[DF_USTAR_BLOCK];
    memset(h.name, 'x', 101); /* no slash to cut it at */
    assert_int_equal(df_ustar_print(&h, 0, block, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void what_is_no_header_of_a_file_below_here_is_refused(void **state)
{
    (void)state;
    static const char *const astray[] = {"/etc/passwd", "../x", "a/../b", "a//b",
                                         "./a",         "a/",   "a/.."};
    struct df_ustar h = {.name = "good", .size = 7}, got = {0};
    char good[DF_USTAR_BLOCK], bad[DF_USTAR_BLOCK];
    bool end = false;
    assert_int_equal(df_ustar_print(&h, 0, good, NULL), 0);
    for (int i = 0; i < DF_USTAR_BLOCK; i++) { /* one flipped bit anywhere */
        memcpy(bad, good, sizeof(bad));
        bad[i] ^= 1;
        bool blank = i == 155; /* the last byte of the checksum may be any end of a number */
        if (!blank && df_ustar_parse(bad, &got, &end, NULL) == 0)
            fail_msg("byte %d", i);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(astray); i++) {
        df_copy(h.name, sizeof(h.name), astray[i]);
        assert_int_equal(df_ustar_print(&h, 0, bad, NULL), 0);
        assert_int_equal(df_ustar_parse(bad, &got, &end, NULL), -1);
    }
    memset(bad, 0, sizeof(bad));
    assert_int_equal(df_ustar_parse(bad, &got, &end, NULL), 0);
    assert_true(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_what_was_printed),
        cmocka_unit_test(a_name_that_does_not_fit_is_refused),
        cmocka_unit_test(what_is_no_header_of_a_file_below_here_is_refused),
    };
    return cmocka_run_group_tests_name("ustar", tests, NULL, NULL);
}
