/* Values as the tools print them. What is expected was printed by OpenTofu 1.12.6 and Terraform
 * 1.11.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/hcl/value.h"

static void assert_printed(const char *value, const char *type, const char *text)
{
    DF_JSON cJSON *v = NULL, *t = NULL;
    DF_BUF struct df_buf out = DF_BUF_INIT(65536);
    assert_int_equal(df_json_parse_nul(value, strlen(value), &v, NULL), 0);
    if (type)
        assert_int_equal(df_json_parse(type, strlen(type), &t, NULL), 0);
    df_hcl_print_value(v, t, &out);
    assert_string_equal(df_buf_str(&out), text);
}

static void values_are_printed_as_the_tool_prints_them(void **state)
{
    (void)state;
    assert_printed("\"moon\"", "\"string\"", "\"moon\"");
    assert_printed("1.5", "\"number\"", "1.5");
    assert_printed("true", "\"bool\"", "true");
    assert_printed("[]", "[\"tuple\",[]]", "[]");
    assert_printed("{}", "[\"object\",{}]", "{}");
    assert_printed("{\"a\":[1,2,{\"b\":\"q\\\"u\"}],\"c d\":null,\"e\":\"l1\\nl2\\n\",\"f\":1.5}",
                   "[\"object\",{\"a\":[\"tuple\",[\"number\",\"number\",[\"object\",{\"b\":"
                   "\"string\"}]]],\"c d\":\"dynamic\",\"e\":\"string\",\"f\":\"number\"}]",
                   "{\n"
                   "  \"a\" = [\n"
                   "    1,\n"
                   "    2,\n"
                   "    {\n"
                   "      \"b\" = \"q\\\"u\"\n"
                   "    },\n"
                   "  ]\n"
                   "  \"c d\" = null\n"
                   "  \"e\" = <<-EOT\n"
                   "  l1\n"
                   "  l2\n"
                   "  \n"
                   "  EOT\n"
                   "  \"f\" = 1.5\n"
                   "}");
}

static void the_type_of_a_collection_is_around_it(void **state)
{
    (void)state;
    assert_printed("[\"a\"]", "[\"list\",\"string\"]", "tolist([\n  \"a\",\n])");
    assert_printed("[\"a\"]", "[\"set\",\"string\"]", "toset([\n  \"a\",\n])");
    assert_printed("{\"k\":[1]}", "[\"map\",[\"list\",\"number\"]]",
                   "tomap({\n  \"k\" = tolist([\n    1,\n  ])\n})");
    assert_printed("{\"k\":null,\"n\":null}", "[\"object\",{\"k\":\"string\",\"n\":\"dynamic\"}]",
                   "{\n  \"k\" = tostring(null)\n  \"n\" = null\n}");
    assert_printed("{\"k\":[1]}", NULL, "{\n  \"k\" = [\n    1,\n  ]\n}");
}

static void strings_end_where_they_should(void **state)
{
    (void)state;
    assert_printed("\"a\\nb\"", NULL, "<<EOT\na\nb\nEOT");
    assert_printed("\"a\\nEOT\"", NULL, "<<EOT_\na\nEOT\nEOT_");
    assert_printed("\" EOT \\nEOT_\"", NULL, "<<EOT__\n EOT \nEOT_\nEOT__");
    assert_printed("\"a\\u0000b\"", NULL, "\"a\\x00b\"");
    assert_printed("\"tab\\t esc\\u001b del\\u007f c1\\u0085 \\u00fc \\\\\"", NULL,
                   "\"tab\\t esc\\x1b del\\x7f c1\\u0085 \xc3\xbc \\\\\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_printed_as_the_tool_prints_them),
        cmocka_unit_test(the_type_of_a_collection_is_around_it),
        cmocka_unit_test(strings_end_where_they_should),
    };
    return cmocka_run_group_tests_name("hcl_value", tests, NULL, NULL);
}
