#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/yaml/yaml.h"

static void assert_reads(const char *yaml, const char *json)
{
    struct df_err err = {0};
    DF_JSON cJSON *j = NULL;
    if (df_yaml_parse(yaml, strlen(yaml), &j, NULL, &err) < 0)
        fail_msg("%s: %s", yaml, err.message);
    DF_FREE char *text = df_json_print(j);
    if (strcmp(text, json) != 0)
        fail_msg("%s: %s instead of %s", yaml, text, json);
}

static void assert_refused(const char *yaml, const char *message)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_yaml_parse(yaml, strlen(yaml), &j, NULL, &err) == 0)
        fail_msg("accepted: %.200s", yaml);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_null(j);
    if (!strstr(err.message, message))
        fail_msg("%.200s: \"%s\" does not say \"%s\"", yaml, err.message, message);
}

static void plain_scalars_follow_the_core_schema(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"", "null"},
        {"# nothing\n", "null"},
        {"~", "null"},
        {"Null", "null"},
        {"nULL", "\"nULL\""},
        {"true", "true"},
        {"TRUE", "true"},
        {"False", "false"},
        {"yes", "\"yes\""},
        {"no", "\"no\""},
        {"on", "\"on\""},
        {"y", "\"y\""},
        {"0", "0"},
        {"-12", "-12"},
        {"+12", "12"},
        {"007", "7"},
        {"0o17", "15"},
        {"0x1F", "31"},
        {"0o8", "\"0o8\""},
        {"0x", "\"0x\""},
        {"-0x1", "\"-0x1\""},
        {"1_000", "\"1_000\""},
        {"12:30", "\"12:30\""},
        {"2026-11-21", "\"2026-11-21\""},
        {"1.5", "1.5"},
        {".5", "0.5"},
        {"1.", "1"},
        {"1e3", "1000"},
        {"-1.5E-1", "-0.15"},
        {"1e", "\"1e\""},
        {"0.1234567890123456789012345678", "0.1234567890123456789012345678"},
        {"+00.12345678901234567890", "0.12345678901234567890"},
        {"-.12345678901234567890e+2", "-0.12345678901234567890e+2"},
        {"12345678901234567890.", "12345678901234567890"},
        {"1e400", "1e400"},
        {"-0", "-0"},
        {".", "\".\""},
        {"-", "[null]"},
        {"+", "\"+\""},
        {"1.12.6", "\"1.12.6\""},
        {"9007199254740993", "9007199254740993"},
        {"+09007199254740993", "9007199254740993"},
        {"-9007199254740993", "-9007199254740993"},
        {"'1'", "\"1\""},
        {"\"true\"", "\"true\""},
        {"'null'", "\"null\""},
        {"|\n  a\n  b\n", "\"a\\nb\\n\""},
        {">-\n  a\n  b\n", "\"a b\""},
        {"|\n  5\n", "\"5\\n\""},
        {"\"\\u20ac\\n\"", "\"\xe2\x82\xac\\n\""},
        {"\xef\xbb\xbf"
         "a: 1",
         "{\"a\":1}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_reads(cases[i].yaml, cases[i].json);
}

static void mappings_and_sequences_become_objects_and_arrays(void **state)
{
    (void)state;
    assert_reads("a: 1\nb:\n  - x\n  - {c: d, e: [1, 2]}\nf:\n",
                 "{\"a\":1,\"b\":[\"x\",{\"c\":\"d\",\"e\":[1,2]}],\"f\":null}");
    assert_reads("{}", "{}");
    assert_reads("[]", "[]");
    assert_reads("'8080': x", "{\"8080\":\"x\"}");
    assert_reads("on: x", "{\"on\":\"x\"}");
    assert_reads("'<<': x", "{\"<<\":\"x\"}");
    assert_reads("--- {a: 1}\n...\n", "{\"a\":1}");
}

static void aliases_are_copied(void **state)
{
    (void)state;
    assert_reads("a: &x {k: [1]}\nb: *x\nc: [*x, *x]\n",
                 "{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]},\"c\":[{\"k\":[1]},{\"k\":[1]}]}");
    assert_reads("a: &x 1\nb: *x\nc: &x two\nd: *x\n",
                 "{\"a\":1,\"b\":1,\"c\":\"two\",\"d\":\"two\"}");
    assert_reads("&a [&a x, *a]", "[\"x\",\"x\"]");
}

static void what_is_no_document_of_ours_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"a: !!str 5", "1:4: tags are not supported"},
        {"a: !custom {}", "tags"},
        {"!!map {}", "tags"},
        {"- !x [1]", "tags"},
        {"a: 1\n!!str b: 2", "2:1: a key may have neither tag nor anchor"},
        {"base: &b {x: 1}\nc:\n  <<: *b\n", "3:3: merge keys"},
        {"a: 1\nb: 2\na: 3\n", "line 3: the key \"a\" stands twice"},
        {"x:\n  - a: 1\n    'a': 2\n", "line 3: the key \"a\" stands twice"},
        {"8080: x", "1:1: a key must be a string: put it in quotes"},
        {"true: x", "put it in quotes"},
        {"~: x", "put it in quotes"},
        {"? [a]\n: x", "a key must be a string"},
        {"? {a: b}\n: x", "a key must be a string"},
        {"a: &k b\n*k : c", "2:1: a key must be a string"},
        {"a: *nothing", "1:4: the alias has no anchor"},
        {"a: &x [*x]", "1:8: the alias is inside the value of its own anchor"},
        {"a: .inf", "not finite"},
        {"a: -.Inf", "not finite"},
        {"a: .nan", "not finite"},
        {"a: 0xffffffffffffffffff", "too large"},
        {"a: \"x\\0y\"", "NUL"},
        {"a: [1", "bad YAML at"},
        {"a: b: c", "1:5"},
        {"a:\n\t- b", "2:1"},
        {"a: 'b", "bad YAML at"},
        {"a: @b", "bad YAML at"},
        {"a: \xff", "not UTF-8"},
        {"\xff\xfe"
         "a",
         "bad YAML: it is UTF-16, as PowerShell's > writes it"},
        {"a: \x01", "bad YAML at byte 3"},
        {"a: 1\n---\nb: 2\n", "2:1: only one document"},
        {"%YAML 3.0\n---\na", "bad YAML at"},
        {"a: \"\\ud800\"", "bad YAML at"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_refused(cases[i].yaml, cases[i].message);
}

static void an_alias_bomb_ends_at_the_budget(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 40; i++) {
        (void)df_buf_addf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            (void)df_buf_addf(&b, "%s*a%d", k ? ", " : "", i - 1);
        (void)df_buf_adds(&b, "]\n");
    }
    assert_refused(df_buf_str(&b), "more than 100000 values");
}

static void many_values_end_at_the_budget_and_one_fewer_is_accepted(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < DF_LIMIT_YAML_NODES - 1; i++)
        (void)df_buf_adds(&b, "- 1\n");
    DF_JSON cJSON *j = NULL;
    struct df_err err = {0};
    assert_int_equal(df_yaml_parse(df_buf_str(&b), b.len, &j, NULL, &err), 0);
    assert_int_equal(cJSON_GetArraySize(j), DF_LIMIT_YAML_NODES - 1);
    (void)df_buf_adds(&b, "- 1\n");
    assert_refused(df_buf_str(&b), "more than 100000 values");
}

static void nesting_ends_at_the_limit_also_through_aliases(void **state)
{
    (void)state;
    char deep[2 * (DF_LIMIT_JSON_DEPTH + 1) + 1] = {0};
    memset(deep, '[', DF_LIMIT_JSON_DEPTH);
    memset(deep + DF_LIMIT_JSON_DEPTH, ']', DF_LIMIT_JSON_DEPTH);
    assert_reads(deep, deep);
    memset(deep, '[', DF_LIMIT_JSON_DEPTH + 1);
    memset(deep + DF_LIMIT_JSON_DEPTH + 1, ']', DF_LIMIT_JSON_DEPTH + 1);
    assert_refused(deep, "nested too deeply");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, "a: &a [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"
                          "b: &b [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"
                          "c: [[[*b]]]\n");
    assert_refused(df_buf_str(&b), "3:7: nested too deeply");
    DF_FREE char *bomb = malloc(300001);
    assert_non_null(bomb);
    memset(bomb, '[', 300000);
    bomb[300000] = '\0';
    assert_refused(bomb, "nested too deeply");
}

static void anchors_end_at_their_limit(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < DF_LIMIT_YAML_ANCHORS; i++)
        (void)df_buf_addf(&b, "- &a%d 1\n", i);
    DF_JSON cJSON *j = NULL;
    assert_int_equal(df_yaml_parse(df_buf_str(&b), b.len, &j, NULL, NULL), 0);
    (void)df_buf_adds(&b, "- &more 1\n");
    assert_refused(df_buf_str(&b), "too many anchors");
}

static void the_line_of_every_value_is_known(void **state)
{
    (void)state;
    static const char text[] = "a: 1\n"
                               "spec:\n"
                               "  source:\n"
                               "  - url: x\n"
                               "    tag:\n"
                               "      v1\n"
                               "  - url: y\n"
                               "copy: [1,\n"
                               "  {k: 2}]\n";
    static const struct {
        const char *path;
        unsigned line;
    } cases[] = {
        {"", 1},
        {"a", 1},
        {"spec", 3},
        {"spec.source", 4},
        {"spec.source[0]", 4},
        {"spec.source[0].url", 4},
        {"spec.source[0].tag", 6},
        {"spec.source[1].url", 7},
        {"copy[1].k", 9},
        {"spec.nothing", 0},
        {"spec.source[2]", 0},
        {"spec.source[x]", 0},
        {"spec.source[", 0},
        {"spec.source[]", 0},
        {"spec..source", 0},
        {"spe", 0},
        {"spec.source[1].", 0},
        {".", 0},
    };
    DF_JSON cJSON *j = NULL;
    struct df_yaml_lines *lines = NULL;
    assert_int_equal(df_yaml_parse(text, strlen(text), &j, &lines, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (df_yaml_line(lines, cases[i].path) != cases[i].line)
            fail_msg("%s: line %u", cases[i].path, df_yaml_line(lines, cases[i].path));
    assert_int_equal(df_yaml_line(NULL, "a"), 0);
    df_yaml_lines_free(lines);
    df_yaml_lines_free(NULL);
}

static void several_documents_become_an_array_without_the_empty_ones(void **state)
{
    (void)state;
    static const char text[] = "---\n---\na: &x 1\n---\nb: 2\n...\n---\n# nothing\n";
    DF_JSON cJSON *j = NULL;
    assert_int_equal(df_yaml_parse_all(text, strlen(text), &j, NULL), 0);
    DF_FREE char *printed = df_json_print(j);
    assert_string_equal(printed, "[{\"a\":1},{\"b\":2}]");
    static const char leaks[] = "a: &x 1\n---\nb: *x\n";
    cJSON *none = NULL;
    struct df_err err = {0};
    assert_int_equal(df_yaml_parse_all(leaks, strlen(leaks), &none, &err), -1);
    assert_non_null(strstr(err.message, "no anchor"));
    DF_JSON cJSON *empty = NULL;
    assert_int_equal(df_yaml_parse_all(NULL, 0, &empty, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(empty), 0);
}

static void printed_yaml_reads_back_as_the_same_tree(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "null",
        "\"\"",
        "\"plain\"",
        "{}",
        "[]",
        "[[],[[1,[2]]],{}]",
        "{\"a\":{\"b\":{\"c\":[{\"d\":1,\"e\":[1,2,{\"f\":null}]},\"x\"]}},\"g\":{},\"h\":[]}",
        "[\"yes\",\"No\",\"true\",\"null\",\"~\",\"\",\" \",\"a \",\" a\",\"a: b\",\"a:\",\"a "
        "#b\",\"#a\",\"- a\",\"1\",\"1.5\","
        "\"0x1\",\"-\",\"--- "
        "a\",\"...\",\"'a\",\"\\\"\",\"a\\nb\",\"\\t\",\"*a\",\"&a\",\"!a\",\"%a\",\"@a\",\"`a\","
        "\"{a\",\"[a\","
        "\"a,b\",\"https://x/"
        "y?z\",\"git@host:path\",\"2026-11-21\",\"\\u00e9\",\"<<\",\"=\",\"?\",\"a\\u007fb\","
        "\"\\u2028\"]",
        "{\"yes\":1,\"1\":2,\"a: b\":3,\"\":4,\"\xc3\xa9\":5,\"x y\":6}",
        "[0.1,1e300,9007199254740993,-5,true,false]",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(documents); i++) {
        DF_JSON cJSON *j = NULL, *again = NULL;
        struct df_err err = {0};
        assert_int_equal(df_json_parse(documents[i], strlen(documents[i]), &j, NULL), 0);
        DF_FREE char *yaml = df_yaml_print(j);
        if (df_yaml_parse(yaml, strlen(yaml), &again, NULL, &err) < 0)
            fail_msg("%s: %s", yaml, err.message);
        if (!df_json_equal(j, again))
            fail_msg("%s: %s", documents[i], yaml);
    }
}

static void printed_yaml_is_what_a_person_would_write(void **state)
{
    (void)state;
    static const char json[] =
        "{\"kind\":\"Executor\",\"metadata\":{\"name\":\"net\"},\"spec\":{\"source\":{\"url\":"
        "\"https://git.example/"
        "net.git\"},\"arguments\":[\"-parallelism=5\"],\"secrets\":[{\"name\":\"db\","
        "\"keys\":[\"a\"]},{\"name\":\"x\"}],\"variables\":{\"on\":\"no\"},\"labels\":{}}}";
    DF_JSON cJSON *j = NULL;
    assert_int_equal(df_json_parse(json, strlen(json), &j, NULL), 0);
    DF_FREE char *yaml = df_yaml_print(j);
    assert_string_equal(yaml, "kind: Executor\n"
                              "metadata:\n"
                              "  name: net\n"
                              "spec:\n"
                              "  source:\n"
                              "    url: https://git.example/net.git\n"
                              "  arguments:\n"
                              "    - \"-parallelism=5\"\n"
                              "  secrets:\n"
                              "    - name: db\n"
                              "      keys:\n"
                              "        - a\n"
                              "    - name: x\n"
                              "  variables:\n"
                              "    \"on\": \"no\"\n"
                              "  labels: {}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_follow_the_core_schema),
        cmocka_unit_test(mappings_and_sequences_become_objects_and_arrays),
        cmocka_unit_test(aliases_are_copied),
        cmocka_unit_test(what_is_no_document_of_ours_is_refused_with_its_place),
        cmocka_unit_test(an_alias_bomb_ends_at_the_budget),
        cmocka_unit_test(many_values_end_at_the_budget_and_one_fewer_is_accepted),
        cmocka_unit_test(nesting_ends_at_the_limit_also_through_aliases),
        cmocka_unit_test(anchors_end_at_their_limit),
        cmocka_unit_test(the_line_of_every_value_is_known),
        cmocka_unit_test(several_documents_become_an_array_without_the_empty_ones),
        cmocka_unit_test(printed_yaml_reads_back_as_the_same_tree),
        cmocka_unit_test(printed_yaml_is_what_a_person_would_write),
    };
    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
