#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/terrakube/jdk.h"

struct form {
    const char *text;
    size_t n;
    const char *bytes;
    size_t bytes_n;
};
#define FORM(text, bytes)                                                                          \
    {                                                                                              \
        (text), sizeof(text) - 1, (bytes), sizeof(bytes) - 1                                       \
    }
#define HEAD "\xac\xed\x00\x05"

/* What the executor of Terrakube 2.28.0 was seen to write. */
static const struct form recorded[] = {
    FORM("1", HEAD "t\x00\x01"
                   "1"),
    FORM("jobId", HEAD "t\x00\x05"
                       "jobId"),
    FORM("46a547e6-8e25-4b0b-b680-4994649bd0c0", HEAD "t\x00\x24"
                                                      "46a547e6-8e25-4b0b-b680-4994649bd0c0"),
    FORM("", HEAD "t\x00\x00"),
    FORM("nul[\0] bad-utf8[\xff] cr[", HEAD "t\x00\x19"
                                            "nul[\xc0\x80] bad-utf8[\xef\xbf\xbd] cr["),
};

static void write_as(const struct form *f, size_t i)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_add(&b, f->text, f->n, NULL), 0);
    if (b.len != f->bytes_n || memcmp(b.data, f->bytes, b.len) != 0)
        fail_msg("case %zu: %zu bytes instead of %zu", i, b.len, f->bytes_n);
}

static void strings_are_written_as_the_java_executor_was_seen_to_write_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(recorded); i++)
        write_as(&recorded[i], i);
}

/* The three lines of one character each that the recording has. */
static void a_string_of_more_than_65535_encoded_bytes_has_the_long_form(void **state)
{
    (void)state;
    static const struct {
        char c;
        size_t n;
        struct form head;
    } lines[] = {
        {'y', 65535, FORM("", HEAD "t\xff\xffyy")},
        {'z', 65536, FORM("", HEAD "|\0\0\0\0\0\x01\0\0zz")},
        {'x', 70000, FORM("", HEAD "|\0\0\0\0\0\x01\x11pxx")},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(lines); i++) {
        DF_FREE char *text = malloc(lines[i].n);
        assert_non_null(text);
        memset(text, lines[i].c, lines[i].n);
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB), back = DF_BUF_INIT(DF_MIB);
        assert_int_equal(df_jdk_add(&b, text, lines[i].n, NULL), 0);
        assert_int_equal(b.len, lines[i].n + lines[i].head.bytes_n - 2);
        assert_memory_equal(b.data, lines[i].head.bytes, lines[i].head.bytes_n);
        assert_int_equal(df_jdk_read(b.data, b.len, &back, NULL), 0);
        assert_int_equal(back.len, lines[i].n);
        assert_memory_equal(back.data, text, back.len);
    }
}

static void the_form_depends_on_the_encoded_length_not_on_that_of_the_text(void **state)
{
    (void)state;
    static const char nuls[32768];
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_add(&b, nuls, 32767, NULL), 0); /* two bytes each */
    assert_memory_equal(b.data, HEAD "t\xff\xfe\xc0\x80", 9);
    df_buf_clear(&b);
    assert_int_equal(df_jdk_add(&b, nuls, 32768, NULL), 0);
    assert_memory_equal(b.data, HEAD "|\0\0\0\0\0\x01\0\0\xc0\x80", 15);
}

static void a_character_above_ffff_is_two_surrogates(void **state)
{
    (void)state;
    static const struct form rocket = FORM("\xe2\x98\x83 \xf0\x9f\x9a\x80",
                                           HEAD "t\x00\x0a\xe2\x98\x83 \xed\xa0\xbd\xed\xba\x80");
    write_as(&rocket, 0);
    DF_BUF struct df_buf back = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_read(rocket.bytes, rocket.bytes_n, &back, NULL), 0);
    assert_string_equal(df_buf_str(&back), rocket.text);
}

static void what_is_no_utf8_becomes_replacement_characters(void **state)
{
    (void)state;
#define FFFD "\xef\xbf\xbd"
    static const struct form cases[] = {
        FORM("a\x80z", HEAD "t\x00\x05"
                            "a" FFFD "z"),
        FORM("\xf0\x9f\x9a", HEAD "t\x00\x03" FFFD),           /* cut short: one */
        FORM("\xf0\x9f\x9az", HEAD "t\x00\x04" FFFD "z"),      /* the next character stays */
        FORM("\xc0\x80", HEAD "t\x00\x06" FFFD FFFD),          /* an overlong NUL is no NUL */
        FORM("\xed\xa0\xbd", HEAD "t\x00\x09" FFFD FFFD FFFD), /* nor is a surrogate a character */
        FORM("\xf4\x90\x80\x80", HEAD "t\x00\x0c" FFFD FFFD FFFD FFFD),
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        write_as(&cases[i], i);
}

static void a_nul_and_a_lone_surrogate_are_read_as_utf8_has_them(void **state)
{
    (void)state;
    static const struct form form = FORM("a\0" FFFD "z", HEAD "t\x00\x07"
                                                              "a\xc0\x80\xed\xa0\xbdz");
    DF_BUF struct df_buf back = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_read(form.bytes, form.bytes_n, &back, NULL), 0);
    assert_int_equal(back.len, form.n);
    assert_memory_equal(back.data, form.text, form.n);
}

static void what_is_not_one_string_is_refused(void **state)
{
    (void)state;
    static const struct form bad[] = {
        FORM("", ""),
        FORM("", "1"),
        FORM("", HEAD),
        FORM("", HEAD "t\x00"),
        FORM("", HEAD "t\x00\x02"
                      "1"), /* shorter than it says */
        FORM("", HEAD "t\x00\x01"
                      "12"),
        FORM("", HEAD "sr\x00\x01"
                      "1"), /* an object */
        FORM("", HEAD "|\xff\xff\xff\xff\xff\xff\xff\xff"
                      "1"),
        FORM("", HEAD "t\x00\x01\x80"),
        FORM("", HEAD "t\x00\x02\xe2\x98"),
        FORM("", HEAD "t\x00\x04\xf0\x9f\x9a\x80"), /* four bytes are not Java's way */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
        struct df_err err = {0};
        if (df_jdk_read(bad[i].bytes, bad[i].bytes_n, &out, &err) == 0)
            fail_msg("case %zu was taken", i);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_written_as_the_java_executor_was_seen_to_write_them),
        cmocka_unit_test(a_string_of_more_than_65535_encoded_bytes_has_the_long_form),
        cmocka_unit_test(the_form_depends_on_the_encoded_length_not_on_that_of_the_text),
        cmocka_unit_test(a_character_above_ffff_is_two_surrogates),
        cmocka_unit_test(what_is_no_utf8_becomes_replacement_characters),
        cmocka_unit_test(a_nul_and_a_lone_surrogate_are_read_as_utf8_has_them),
        cmocka_unit_test(what_is_not_one_string_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
