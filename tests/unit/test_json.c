#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/json/json.h"

static cJSON *parsed(const char *text)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static void assert_prints(const cJSON *j, const char *expected)
{
    DF_FREE char *text = df_json_print(j);
    assert_string_equal(text, expected);
}

static void well_formed_json_is_read_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"null", "null"},
        {" \t\r\n true \n", "true"},
        {"false", "false"},
        {"0", "0"},
        {"-0", "-0"},
        {"-12.5e-1", "-1.25"},
        {"1E3", "1000"},
        {"0.1", "0.1"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"1700000000000000", "1700000000000000"},
        {"9007199254740991", "9007199254740991"},
        {"-9007199254740991", "-9007199254740991"},
        {"9007199254740992", "9007199254740992"},
        {"9007199254740993", "9007199254740993"},
        {"9007199254740994", "9007199254740994"},
        {"9007199254740994.5", "9007199254740994.5"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709551616"},
        {"1e20", "100000000000000000000"},
        {"1e21", "1e+21"},
        {"-123456789e300", "-1.23456789e+308"},
        {"18446744073709551616000", "18446744073709551616000"},
        {"\"\"", "\"\""},
        {"\"\\u0041\\n\\t\\\"\\\\\\/\\b\\f\\r\"", "\"A\\n\\t\\\"\\\\/\\b\\f\\r\""},
        {"\"\\u001f\\u007f\\u009b\"", "\"\\u001f\\u007f\\u009b\""},
        {"\"\\u2028\\ufeff\\uffff\\u00a0\"", "\"\\u2028\\ufeff\\uffff\xc2\xa0\""},
        {"\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\"\xc3\xa9\"", "\"\xc3\xa9\""},
        {"[]", "[]"},
        {"{ }", "{}"},
        {"[1, [2, {}], \"x\"]", "[1,[2,{}],\"x\"]"},
        {"{\"b\":1, \"a\":{\"c\":null}}", "{\"b\":1,\"a\":{\"c\":null}}"},
        {"{\"\":1}", "{\"\":1}"},
        {"{\"a\":1,\"A\":2}", "{\"a\":1,\"A\":2}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = parsed(cases[i].in);
        assert_prints(j, cases[i].out);
    }
}

static void malformed_json_is_refused_with_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *in, *message;
    } cases[] = {
        {"", "at byte 0: the text ends too early"},
        {"  ", "at byte 2: the text ends too early"},
        {"nul", "at byte 0: not a value"},
        {"nulll", "at byte 4: something follows"},
        {"1 2", "at byte 2: something follows"},
        {"01", "at byte 1: something follows"},
        {"+1", "not a value"},
        {"-", "not a value"},
        {".5", "not a value"},
        {"1.", "decimal point"},
        {"1e", "exponent"},
        {"1e+", "exponent"},
        {"0x10", "something follows"},
        {"NaN", "not a value"},
        {"Infinity", "not a value"},
        {"'a'", "not a value"},
        {"\"a", "does not end"},
        {"\"a\\\"", "does not end"},
        {"\"\\", "does not end"},
        {"\"\\x41\"", "unknown escape"},
        {"\"\\u12\"", "four hex digits"},
        {"\"\\uZZZZ\"", "four hex digits"},
        {"\"\\u0000\"", "NUL"},
        {"\"\\ud800\"", "surrogate"},
        {"\"\\ud800x\"", "surrogate"},
        {"\"\\ud800\\n\"", "surrogate"},
        {"\"\\ud800\\ud800\"", "surrogate"},
        {"\"\\udc00\"", "surrogate"},
        {"\"a\nb\"", "at byte 2: a control character"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\xc0\x80\"", "not UTF-8"},
        {"\"\xed\xa0\x80\"", "not UTF-8"},
        {"\xef\xbb\xbf{}", "it begins with a byte order mark: it must be UTF-8"},
        {"\xff\xfe{", "it is UTF-16, as PowerShell's > writes it"},
        {"[1,]", "not a value"},
        {"[1 2]", "\",\" or \"]\""},
        {"[1}", "\",\" or \"]\""},
        {"[", "ends too early"},
        {"{", "double quotes"},
        {"{\"a\"}", "\":\""},
        {"{\"a\":}", "not a value"},
        {"{\"a\":1,}", "double quotes"},
        {"{a:1}", "double quotes"},
        {"{\"a\":1]", "\",\" or \"}\""},
        {"{\"a\":1,\"a\":1}", "the key \"a\" twice"},
        {"{\"x\":[{\"b\":1,\"c\":2,\"\\u0062\":3}]}", "the key \"b\" twice"},
        {"// no\n1", "not a value"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        cJSON *j = NULL;
        assert_int_equal(df_json_parse(cases[i].in, strlen(cases[i].in), &j, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_null(j);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].in, err.message);
    }
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    (void)state;
    static const char *const texts[] = {"\0", "{}\0", "\"a\0b\"", "[1,\0]"};
    static const size_t lengths[] = {1, 3, 5, 5};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_err err = {0};
        cJSON *j = NULL;
        assert_int_equal(df_json_parse(texts[i], lengths[i], &j, &err), -1);
        assert_non_null(strstr(err.message, "NUL"));
    }
}

/* What tools and modules made may have one; it goes the whole way. */
static void a_nul_of_others_is_read_printed_and_shown(void **state)
{
    (void)state;
    static const char text[] = "{\"k\\u0000\":[\"a\\u0000b\",\"\\u0000\\u0000\"]}";
    DF_JSON cJSON *j = NULL, *without = NULL;
    assert_int_equal(df_json_parse_nul(text, strlen(text), &j, NULL), 0);
    assert_int_equal(df_json_parse_without(text, strlen(text), NULL, &without, NULL), 0);
    assert_true(df_json_equal(j, without));
    DF_FREE char *same = df_json_print_nul(j), *lossy = df_json_print(j);
    assert_string_equal(same, text);
    assert_string_equal(lossy, "{\"k\xef\xbf\xbd\":[\"a\xef\xbf\xbd"
                               "b\",\"\xef\xbf\xbd\xef\xbf\xbd\"]}");
    char *shown = cJSON_GetArrayItem(j->child, 0)->valuestring;
    DF_BUF struct df_buf bytes = DF_BUF_INIT(100);
    assert_int_equal(df_json_add_bytes(&bytes, shown), 0);
    assert_int_equal(bytes.len, 3);
    assert_memory_equal(bytes.data, "a\0b", 3);
    df_json_show_nul(shown);
    assert_string_equal(shown, "a^@b");
}

static void the_text_need_not_end_with_a_nul(void **state)
{
    (void)state;
    /* Exactly sized, so that a sanitizer sees any read beyond. */
    for (size_t n = 1; n <= 12; n++) {
        static const char text[] = "{\"a\":[1,-2]}";
        DF_FREE char *exact = malloc(n);
        assert_non_null(exact);
        memcpy(exact, text, n);
        struct df_err err = {0};
        DF_JSON cJSON *j = NULL;
        assert_int_equal(df_json_parse(exact, n, &j, &err), n == 12 ? 0 : -1);
    }
}

static char *nested(size_t depth)
{
    char *s = malloc(2 * depth + 1);
    assert_non_null(s);
    memset(s, '[', depth);
    memset(s + depth, ']', depth);
    s[2 * depth] = '\0';
    return s;
}

static void nesting_ends_at_the_limit(void **state)
{
    (void)state;
    DF_FREE char *deepest = nested(DF_LIMIT_JSON_DEPTH), *deeper = nested(DF_LIMIT_JSON_DEPTH + 1);
    DF_FREE char *bomb = nested(1000000);
    DF_JSON cJSON *j = parsed(deepest);
    assert_prints(j, deepest);
    struct df_err err = {0};
    cJSON *none = NULL;
    assert_int_equal(df_json_parse(deeper, strlen(deeper), &none, &err), -1);
    assert_non_null(strstr(err.message, "nested too deeply"));
    assert_int_equal(df_json_parse(bomb, strlen(bomb), &none, &err), -1);
}

static void many_keys_are_checked_for_duplicates_without_a_quadratic_search(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(8 * DF_MIB);
    assert_int_equal(df_buf_adds(&b, "{"), 0);
    for (int i = 0; i < 300000; i++)
        assert_int_equal(df_buf_addf(&b, "\"k%d\":0,", i), 0);
    size_t n = b.len;
    assert_int_equal(df_buf_adds(&b, "\"last\":0}"), 0);
    DF_JSON cJSON *j = parsed(df_buf_str(&b));
    assert_int_equal(cJSON_GetArraySize(j), 300001);
    DF_BUF struct df_buf twice = DF_BUF_INIT(8 * DF_MIB);
    assert_int_equal(df_buf_add(&twice, b.data, n), 0);
    assert_int_equal(df_buf_adds(&twice, "\"k7\":0}"), 0);
    struct df_err err = {0};
    cJSON *none = NULL;
    assert_int_equal(df_json_parse(df_buf_str(&twice), twice.len, &none, &err), -1);
    assert_non_null(strstr(err.message, "\"k7\" twice"));
}

static void
a_number_that_a_double_would_round_keeps_its_text_and_is_none_to_the_getters(void **state)
{
    (void)state;
    DF_JSON cJSON *j = parsed("{\"big\":9007199254740993,\"ok\":9007199254740991,\"half\":0.5,"
                              "\"one\":1.00000000000000000001}");
    assert_prints(j, "{\"big\":9007199254740993,\"ok\":9007199254740991,\"half\":0.5,"
                     "\"one\":1.00000000000000000001}");
    assert_int_equal(df_json_int(j, "big", -1), -1);
    assert_int_equal(df_json_int(j, "one", -1), -1);
    assert_int_equal(df_json_int(j, "ok", -1), 9007199254740991);
    assert_int_equal(df_json_int(j, "half", -1), -1);
    assert_true(df_json_num(j, "half", 0) == 0.5);
    assert_true(df_json_is_number(df_json_at(j, "big")) && df_json_is_number(df_json_at(j, "ok")));
}

/* printed NULL: as it was given. */
static void every_number_keeps_its_value(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
        bool is_text;
    } cases[] = {
        {"0", NULL, false},
        {"-0", NULL, false},
        {"-0.0", "-0", false},
        {"0e99999999999999999999", "0", false},
        {"0.1", NULL, false},
        {"-0.1", NULL, false},
        {"0.10", "0.1", false},
        {"1.0", "1", false},
        {"1E5", "100000", false},
        {"1.5e+3", "1500", false},
        {"1e-7", "1e-07", false},
        {"0.000000100", "1e-07", false},
        {"0.30000000000000004", NULL, false},
        {"123456789.123456789", NULL, true},
        {"5e-324", NULL, true},
        {"1e21", "1e+21", false},
        {"1000000000000000000000", NULL, true},
        {"12345678901234567890", NULL, true},
        {"-12345678901234567890", NULL, true},
        {"18446744073709551616", NULL, false},
        {"0.1234567890123456789012345678", NULL, true},
        {"-0.1234567890123456789012345678", NULL, true},
        {"0.1000000000000000055511151231257827", NULL, true},
        {"0.30000000000000001", NULL, true},
        {"1e400", NULL, true},
        {"-1E+400", NULL, true},
        {"1e-400", NULL, true},
        {"1e99999999999999999999", NULL, true},
        {"1e-99999999999999999999", NULL, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = parsed(cases[i].text);
        assert_prints(j, cases[i].printed ? cases[i].printed : cases[i].text);
        assert_int_equal(cJSON_IsRaw(j), cases[i].is_text);
    }
}

static void strings_that_are_no_utf8_print_as_replacement_characters(void **state)
{
    (void)state;
    DF_JSON cJSON *j = cJSON_CreateString("a\xff"
                                          "b\xe2\x82"
                                          "c\xed\xa0\x80\xf0\x9f");
    DF_FREE char *text = df_json_print(j);
    DF_JSON cJSON *again = parsed(text);
    assert_string_equal(again->valuestring, "a\xef\xbf\xbd"
                                            "b\xef\xbf\xbd\xef\xbf\xbd"
                                            "c\xef\xbf\xbd\xef\xbf\xbd"
                                            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void numbers_that_are_not_finite_print_as_null(void **state)
{
    (void)state;
    DF_JSON cJSON *j = cJSON_CreateArray();
    assert_int_equal(df_json_append(j, cJSON_CreateNumber(NAN), NULL), 0);
    assert_int_equal(df_json_append(j, cJSON_CreateNumber(-INFINITY), NULL), 0);
    assert_prints(j, "[null,null]");
}

static void pretty_printing_indents_by_two_blanks(void **state)
{
    (void)state;
    DF_JSON cJSON *j = parsed("{\"a\":[1,{}],\"b\":{\"c\":[]}}");
    DF_FREE char *text = df_json_print_pretty(j);
    assert_string_equal(text,
                        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}");
}

static void getters_follow_dotted_paths_and_fall_back(void **state)
{
    (void)state;
    DF_JSON cJSON *j =
        parsed("{\"a\":{\"b\":{\"s\":\"x\",\"n\":7,\"t\":true,\"z\":null}},\"ab\":1}");
    assert_string_equal(df_json_str(j, "a.b.s"), "x");
    assert_int_equal(df_json_int(j, "a.b.n", 0), 7);
    assert_true(df_json_bool(j, "a.b.t", false));
    assert_int_equal(df_json_int(j, "ab", 0), 1);
    static const char *const missing[] = {"",  ".",   "a.", "a.b.",  "a.b.s.x",
                                          "b", "a.c", "A",  "a.b.z", "a.b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(missing); i++) {
        assert_null(df_json_str(j, missing[i]));
        assert_int_equal(df_json_int(j, missing[i], 42), 42);
        assert_true(df_json_bool(j, missing[i], true));
    }
    assert_null(df_json_at(NULL, "a"));
    assert_null(df_json_str(j, "a.b.n"));
    assert_int_equal(df_json_int(j, "a.b.s", 3), 3);
}

static void equality_ignores_the_order_of_members_but_not_of_items(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
        {"{\"a\":null}", "{\"b\":null}", false},
        {"{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", false},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"[]", "{}", false},
        {"1", "1.0", true},
        {"1", "\"1\"", false},
        {"true", "false", false},
        {"null", "null", true},
        {"9007199254740993", "9007199254740993", true},
        {"9007199254740993", "9007199254740995", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *a = parsed(cases[i].a), *b = parsed(cases[i].b);
        assert_true(df_json_equal(a, b) == cases[i].equal);
        assert_true(df_json_equal(b, a) == cases[i].equal);
    }
    assert_true(df_json_equal(NULL, NULL));
    DF_JSON cJSON *null = parsed("null");
    assert_false(df_json_equal(null, NULL));
}

static void merge_patch_follows_the_cases_of_rfc_7386(void **state)
{
    (void)state;
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"{\"a\":\"foo\"}", "{\"a\":{\"bar\":{\"baz\":null}}}", "{\"a\":{\"bar\":{}}}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *target = parsed(cases[i].target);
        DF_JSON cJSON *patch = parsed(cases[i].patch);
        assert_int_equal(df_json_merge_patch(&target, patch, NULL), 0);
        assert_prints(target, cases[i].result);
    }
}

static void members_that_nobody_wants_are_passed_over_wherever_they_stand(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: refused */
    } cases[] = {
        {"{\"x\":1,\"a\":2}", "{\"a\":2}"},
        {"{\"a\":2,\"x\":[{\"}\":\"]\\\"\"}, 3 ] }", "{\"a\":2}"},
        {"{\"x\":\"a, b\"}", "{}"},
        {"[{\"x\": null , \"b\":{\"x\":{},\"c\":\"x\"}}]", "[{\"b\":{\"c\":\"x\"}}]"},
        {"{\"xy\":{\"y\":0}}", "{\"xy\":{\"y\":0}}"},
        {"{\"z\":1,\"a\":{\"z\":[],\"x\":{}}}", "{\"a\":{}}"},
        {"{\"x\":", NULL},
        {"{\"x\":}", NULL},
        {"{\"x\":[1,2", NULL},
        {"{\"x\":\"open", NULL},
        {"{\"x\":1]", NULL},
    };
    static const char *const skipped[] = {"x", "z", NULL};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = NULL;
        int result = df_json_parse_without(cases[i].in, strlen(cases[i].in), skipped, &j, NULL);
        assert_int_equal(result, cases[i].out ? 0 : -1);
        if (cases[i].out)
            assert_prints(j, cases[i].out);
    }
}

static void a_path_passes_over_that_member_and_no_other_of_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"{\"a\":{\"x\":1,\"b\":2}}", "{\"a\":{\"b\":2}}"},
        {"{\"list\":[{\"a\":{\"x\":1}},{\"a\":{\"x\":2},\"x\":3}]}",
         "{\"list\":[{\"a\":{}},{\"a\":{},\"x\":3}]}"},
        {"[{\"a\":{\"x\":1}}]", "[{\"a\":{}}]"},
        {"{\"x\":1,\"b\":{\"x\":1}}", "{\"x\":1,\"b\":{\"x\":1}}"},
        {"{\"b\":{\"a\":{\"x\":1}}}", "{\"b\":{\"a\":{\"x\":1}}}"},
        {"{\"a\":{\"b\":{\"x\":1}}}", "{\"a\":{\"b\":{\"x\":1}}}"},
        {"{\"a.x\":1,\"ba\":{\"x\":1}}", "{\"a.x\":1,\"ba\":{\"x\":1}}"},
        {"{\"a\":{\"yx\":1,\"\":2},\"\":{\"a\":{\"x\":3}}}",
         "{\"a\":{\"yx\":1,\"\":2},\"\":{\"a\":{\"x\":3}}}"},
    };
    static const char *const skipped[] = {".a.x", ".list.a.x", NULL};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = NULL;
        assert_int_equal(df_json_parse_without(cases[i].in, strlen(cases[i].in), skipped, &j, NULL),
                         0);
        assert_prints(j, cases[i].out);
    }
}

static void a_text_that_grows_in_steps_is_whole(void **state)
{
    (void)state;
    for (size_t n = 1000; n < 1050; n++) {
        char text[1100] = "\"";
        memset(text + 1, 'x', n);
        memcpy(text + 1 + n, "\"", 2);
        DF_JSON cJSON *j = parsed(text);
        assert_prints(j, text);
    }
}

static void trees_that_differ_anywhere_have_other_hashes(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "\"\"",
                                        "\"1\"",
                                        "[1]",
                                        "[1,2]",
                                        "[[1],2]",
                                        "[[1,2]]",
                                        "[\"ab\"]",
                                        "[\"a\",\"b\"]",
                                        "{\"a\":1}",
                                        "{\"b\":1}",
                                        "{\"a\":2}",
                                        "{\"a\":\"1\"}",
                                        "{\"a\":{}}",
                                        "{\"a\":[]}",
                                        "{\"a\":null}",
                                        "[{},{}]",
                                        "[{}]",
                                        "[{\"a\":1}]",
                                        "{\"a\":1,\"b\":1}",
                                        "{\"a\":{\"b\":1}}",
                                        "{\"a\":{},\"b\":1}"};
    uint64_t hashes[DF_ARRAY_SIZE(texts)];
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_JSON cJSON *j = parsed(texts[i]), *again = parsed(texts[i]);
        hashes[i] = df_json_hash(j, 7);
        assert_true(hashes[i] == df_json_hash(again, 7));
        assert_true(hashes[i] != df_json_hash(j, 8));
        for (size_t k = 0; k < i; k++)
            if (hashes[i] == hashes[k])
                fail_msg("%s and %s", texts[i], texts[k]);
    }
}

static void loading_a_file_names_it_in_every_failure(void **state)
{
    (void)state;
    char dir[] = "/tmp/dayfly-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    DF_FREE char *path = df_fs_join(dir, "x.json");
    struct df_err err = {0};
    DF_JSON cJSON *j = NULL;
    assert_int_equal(df_json_load(path, 100, &j, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(df_fs_replace(path, "{\"a\":1}", 7, 0600, &err), 0);
    assert_int_equal(df_json_load(path, 6, &j, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(df_json_load(path, 7, &j, &err), 0);
    assert_int_equal(df_json_int(j, "a", 0), 1);
    assert_int_equal(df_fs_replace(path, "{", 1, 0600, &err), 0);
    cJSON *none = NULL;
    assert_int_equal(df_json_load(path, 7, &none, &err), -1);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(df_fs_remove_tree(dir, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_json_is_read_and_printed),
        cmocka_unit_test(malformed_json_is_refused_with_the_place),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(a_nul_of_others_is_read_printed_and_shown),
        cmocka_unit_test(the_text_need_not_end_with_a_nul),
        cmocka_unit_test(nesting_ends_at_the_limit),
        cmocka_unit_test(many_keys_are_checked_for_duplicates_without_a_quadratic_search),
        cmocka_unit_test(
            a_number_that_a_double_would_round_keeps_its_text_and_is_none_to_the_getters),
        cmocka_unit_test(every_number_keeps_its_value),
        cmocka_unit_test(strings_that_are_no_utf8_print_as_replacement_characters),
        cmocka_unit_test(numbers_that_are_not_finite_print_as_null),
        cmocka_unit_test(pretty_printing_indents_by_two_blanks),
        cmocka_unit_test(getters_follow_dotted_paths_and_fall_back),
        cmocka_unit_test(equality_ignores_the_order_of_members_but_not_of_items),
        cmocka_unit_test(merge_patch_follows_the_cases_of_rfc_7386),
        cmocka_unit_test(members_that_nobody_wants_are_passed_over_wherever_they_stand),
        cmocka_unit_test(a_path_passes_over_that_member_and_no_other_of_its_name),
        cmocka_unit_test(a_text_that_grows_in_steps_is_whole),
        cmocka_unit_test(trees_that_differ_anywhere_have_other_hashes),
        cmocka_unit_test(loading_a_file_names_it_in_every_failure),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
