/* The variables of a job of Terrakube as arguments of the tool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/terrakube/variables.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

/* The arguments for these variables and this module, joined by blanks, with the directory as
 * DIR. */
static char *arguments(const char *dir, const char *variables, const char *module,
                       struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    DF_JSON cJSON *doc = json(variables);
    DF_STRS struct df_strs args = {0};
    assert_int_equal(df_hcl_scan_text("m.tf", module, strlen(module), &m, NULL), 0);
    if (df_terrakube_variables_write(doc, &m, dir, &args, err) < 0)
        return NULL;
    DF_FREE char *all = df_strs_join(&args, " ");
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    const char *at = all;
    for (const char *p; (p = strstr(at, dir)); at = p + strlen(dir)) {
        (void)df_buf_add(&out, at, (size_t)(p - at));
        (void)df_buf_adds(&out, "DIR");
    }
    (void)df_buf_adds(&out, at);
    return df_buf_take(&out);
}

static char *content(const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_buf text = DF_BUF_INIT(DF_MIB);
    if (df_fs_read(path, &text, NULL) < 0)
        return strdup("");
    (void)unlink(path);
    char *copy = strdup(df_buf_str(&text));
    df_buf_free(&text);
    return copy;
}

#define TEXTS "-var-file=DIR/terrakube.tfvars.json"
#define EXPRESSIONS "-var-file=DIR/terrakube.tfvars"

static const struct {
    const char *variables, *module, *arguments, *texts, *expressions;
} cases[] = {
    {"{}", "variable \"a\" {}\n", "", "", ""},
    /* A text is a text, whatever it looks like. */
    {"{'a':'[1]'}", "variable \"a\" {}\n", TEXTS, "{\"a\":\"[1]\"}", ""},
    {"{'a':'1.0'}", "variable \"a\" {\n  type = string\n}\n", TEXTS, "{\"a\":\"1.0\"}", ""},
    {"{'a':'1'}", "variable \"a\" {\n  type = number # of them\n}\n", TEXTS, "{\"a\":\"1\"}", ""},
    {"{'a':'true'}", "variable \"a\" {\n  type = bool\n}\n", TEXTS, "{\"a\":\"true\"}", ""},
    {"{'a':'${x}'}", "variable \"a\" {}\n", TEXTS, "{\"a\":\"${x}\"}", ""},
    /* An expression. */
    {"{'a':'[1]'}", "variable \"a\" {\n  type = list(number)\n}\n", EXPRESSIONS, "",
     "a = ([1]\n)\n"},
    {"{'a':'1 # one'}", "variable \"a\" {\n  type = any\n}\n", EXPRESSIONS, "",
     "a = (1 # one\n)\n"},
    {"{'a':'{x = 1}'}", "variable \"a\" {\n  type = object({\n    x = string\n  })\n}\n",
     EXPRESSIONS, "", "a = ({x = 1}\n)\n"},
    /* The type of an override file counts, a block without a type does not. */
    {"{'a':'[1]'}",
     "variable \"a\" {\n  type = string\n}\nvariable \"a\" {\n  type = list(string)\n}\n",
     EXPRESSIONS, "", "a = ([1]\n)\n"},
    {"{'a':'[1]'}",
     "variable \"a\" {\n  type = list(string)\n}\nvariable \"a\" {\n  sensitive = true\n}\n",
     EXPRESSIONS, "", "a = ([1]\n)\n"},
    /* The tool must refuse these itself. */
    {"{'b':'1'}", "variable \"a\" {}\n", "-var b=1", "", ""},
    {"{'b':'1'}", "output \"b\" {\n  value = 1\n}\n", "-var b=1", "", ""},
    {"{'b':'1','a':'2'}", "variable \"a\" {}\n", "-var b=1 " TEXTS, "{\"a\":\"2\"}", ""},
    {"{'a':'x','l':'[]'}", "variable \"a\" {}\nvariable \"l\" {\n  type = set(string)\n}\n",
     EXPRESSIONS " " TEXTS, "{\"a\":\"x\"}", "l = ([]\n)\n"},
    /* The other shape of the payload. */
    {"[{'key':'a','value':'x','hcl':false},{'key':'b','value':null}]",
     "variable \"a\" {}\nvariable \"b\" {}\n", TEXTS, "{\"a\":\"x\",\"b\":\"\"}", ""},
};

static void test_values_are_passed_as_the_type_of_the_variable_wants(void **state)
{
    const char *dir = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *args = arguments(dir, cases[i].variables, cases[i].module, NULL);
        DF_FREE char *texts = content(dir, "terrakube.tfvars.json");
        DF_FREE char *expressions = content(dir, "terrakube.tfvars");
        assert_string_equal(args, cases[i].arguments);
        assert_string_equal(texts, cases[i].texts);
        assert_string_equal(expressions, cases[i].expressions);
    }
}

/* {"NAME": "xxx..."} with n bytes of value. */
static char *large(const char *name, size_t n)
{
    DF_FREE char *value = calloc(1, n + 1);
    memset(value, 'x', n);
    return df_strf("{'%s':'%s'}", name, value);
}

static void test_a_declared_value_may_be_larger_than_an_argument(void **state)
{
    const char *dir = *state;
    DF_FREE char *variables = large("a", 300 * DF_KIB);
    DF_FREE char *args = arguments(dir, variables, "variable \"a\" {}\n", NULL);
    DF_FREE char *texts = content(dir, "terrakube.tfvars.json");
    assert_string_equal(args, TEXTS);
    assert_int_equal(strlen(texts), strlen("{\"a\":\"\"}") + 300 * DF_KIB);
}

static void test_an_undeclared_value_that_is_no_argument_is_refused_like_the_tool_does(void **state)
{
    const char *dir = *state;
    struct df_err err = {0};
    DF_FREE char *variables = large("b", 128 * DF_KIB);
    DF_FREE char *args = arguments(dir, variables, "variable \"a\" {}\n", &err);
    assert_null(args);
    assert_string_equal(err.reason, "VariableInvalid");
    assert_non_null(strstr(err.message, "Value for undeclared variable"));
}

static void test_a_value_that_is_no_text_is_refused(void **state)
{
    const char *dir = *state;
    struct df_err err = {0};
    assert_null(arguments(dir, "{'a':1}", "variable \"a\" {}\n", &err));
    assert_string_equal(err.reason, "VariableInvalid");
}

static void test_a_value_that_is_not_one_expression_is_refused_by_its_name(void **state)
{
    static const char *const variables[] = {"{'zones':'[1])\\nx = (2'}", "{'zones':'[1'}",
                                            "{'zones':'1 /*'}", "{'zones':''}", "{'zones':' \\n'}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(variables); i++) {
        struct df_err err = {0};
        assert_null(arguments(*state, variables[i],
                              "variable \"zones\" {\n  type = list(number)\n}\n", &err));
        assert_string_equal(err.reason, "VariableInvalid");
        assert_non_null(strstr(err.message, "\"zones\""));
    }
}

static void test_values_of_sensitive_variables_are_secrets(void **state)
{
    (void)state;
    static const char module[] = "variable \"a\" {\n  sensitive = true\n}\nvariable \"b\" {}\n";
    DF_HCL_MODULE struct df_hcl_module m = {0};
    DF_JSON cJSON *variables = json("{'a':'secret','b':'open','c':'undeclared'}");
    DF_STRS struct df_strs values = {0};
    assert_int_equal(df_hcl_scan_text("m.tf", module, strlen(module), &m, NULL), 0);
    assert_int_equal(df_terrakube_variables_secrets(variables, &m, &values, NULL), 0);
    assert_int_equal(values.len, 1);
    assert_string_equal(values.items[0], "secret");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values_are_passed_as_the_type_of_the_variable_wants,
                                        enter_scratch, leave_scratch),
        cmocka_unit_test_setup_teardown(test_a_declared_value_may_be_larger_than_an_argument,
                                        enter_scratch, leave_scratch),
        cmocka_unit_test_setup_teardown(
            test_an_undeclared_value_that_is_no_argument_is_refused_like_the_tool_does,
            enter_scratch, leave_scratch),
        cmocka_unit_test_setup_teardown(test_a_value_that_is_no_text_is_refused, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(
            test_a_value_that_is_not_one_expression_is_refused_by_its_name, enter_scratch,
            leave_scratch),
        cmocka_unit_test(test_values_of_sensitive_variables_are_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
