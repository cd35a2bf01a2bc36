#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/parse.h"

static void whole_numbers_are_read_to_the_letter(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max, value;
        bool good;
    } cases[] = {
        {"0", 0, 10, 0, true},
        {"10", 0, 10, 10, true},
        {"-5", -5, 10, -5, true},
        {"007", 0, 10, 7, true},
        {"9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX, true},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN, true},
        {"9223372036854775808", INT64_MIN, INT64_MAX, 0, false},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, 0, false},
        {"11", 0, 10, 0, false},
        {"-1", 0, 10, 0, false},
        {"", 0, 10, 0, false},
        {"-", -5, 10, 0, false},
        {"--1", -5, 10, 0, false},
        {"+1", 0, 10, 0, false},
        {" 1", 0, 10, 0, false},
        {"1 ", 0, 10, 0, false},
        {"1x", 0, 10, 0, false},
        {"0x1", 0, 10, 0, false},
        {"1.0", 0, 10, 0, false},
        {"1e1", 0, 10, 0, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        int64_t value = 42;
        int result = df_parse_i64(cases[i].text, cases[i].min, cases[i].max, &value, &err);
        assert_int_equal(result, cases[i].good ? 0 : -1);
        assert_true(value == (cases[i].good ? cases[i].value : 42));
        assert_int_equal(err.cls, cases[i].good ? DF_ERR_NONE : DF_ERR_USER);
    }
}

static void dns_labels_are_recognised(void **state)
{
    (void)state;
    static const char longest[] = "a23456789012345678901234567890123456789012345678901234567890123";
    static const char *const good[] = {"a", "0", "a-b", "a--b", "1a", longest};
    static const char *const bad[] = {"",
                                      "-",
                                      "-a",
                                      "a-",
                                      "A",
                                      "a_b",
                                      "a.b",
                                      "a b",
                                      "a\n",
                                      "\xc3\xa9",
                                      "a/b",
                                      "a\"b",
                                      ("a234567890123456789012345678"
                                       "901234567890123456789012345678901234")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++)
        assert_true(df_is_dns_label(good[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        assert_false(df_is_dns_label(bad[i]));
}

static void names_of_environment_variables_are_recognised(void **state)
{
    (void)state;
    static const char *const good[] = {"A", "_", "a1", "_1", "TF_VAR_x"};
    static const char *const bad[] = {"", "1A", "A=B", "A B", "A-B", "A.B", "\xc3\xa9", "A\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++)
        assert_true(df_is_env_name(good[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        assert_false(df_is_env_name(bad[i]));
}

static void control_characters_are_found(void **state)
{
    (void)state;
    static const char *const with[] = {"\n", "a\tb", "a\x1f", "\x7f"};
    static const char *const without[] = {"", " ", "a~", "\xc3\xa9", NULL};
    for (size_t i = 0; i < DF_ARRAY_SIZE(with); i++)
        assert_true(df_has_control(with[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(without); i++)
        assert_false(df_has_control(without[i]));
}

static void bytes_become_hex(void **state)
{
    (void)state;
    char out[7];
    df_hex("\x00\x7f\xff", 3, out);
    assert_string_equal(out, "007fff");
    df_hex("", 0, out);
    assert_string_equal(out, "");
}

/* An oracle that decodes instead of looking bounds up. */
static bool decodes(const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned c = s[i];
        size_t len = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
        if (c >= 0x80 && (c & 0xc0) == 0x80)
            return false;
        if (c >= 0xf8 || len > n - i)
            return false;
        unsigned point = len == 1 ? c : c & (0x7fU >> len);
        for (size_t k = 1; k < len; k++) {
            if ((s[i + k] & 0xc0) != 0x80)
                return false;
            point = point << 6 | (s[i + k] & 0x3fU);
        }
        static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            return false;
        i += len;
    }
    return true;
}

static void utf8_is_told_from_what_is_none_for_every_two_and_many_longer_sequences(void **state)
{
    (void)state;
    unsigned char s[4];
    static const unsigned char edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                          0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                          0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
    const size_t n = sizeof(edges);
    for (unsigned i = 0; i < 0x10000; i++) {
        s[0] = (unsigned char)(i >> 8);
        s[1] = (unsigned char)i;
        assert_true(df_is_utf8((const char *)s, 2) == decodes(s, 2));
    }
    for (size_t i = 0; i < n * n * n * n; i++) {
        s[0] = edges[i % n];
        s[1] = edges[i / n % n];
        s[2] = edges[i / n / n % n];
        s[3] = edges[i / n / n / n];
        assert_true(df_is_utf8((const char *)s, 3) == decodes(s, 3));
        assert_true(df_is_utf8((const char *)s, 4) == decodes(s, 4));
    }
    assert_true(df_is_utf8("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_read_to_the_letter),
        cmocka_unit_test(dns_labels_are_recognised),
        cmocka_unit_test(names_of_environment_variables_are_recognised),
        cmocka_unit_test(control_characters_are_found),
        cmocka_unit_test(bytes_become_hex),
        cmocka_unit_test(utf8_is_told_from_what_is_none_for_every_two_and_many_longer_sequences),
    };
    return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
