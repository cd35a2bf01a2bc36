/* What `opa eval` has printed: the errors that it tells, and those that it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/opa_answer.h"
#include "tests/unit/json_words.h"

static void an_answer_is_a_value_or_says_why_there_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *out;
        int code;
        const char *message; /* NULL: it has the value */
    } cases[] = {
        {"{\"result\":[{\"expressions\":[{\"value\":{\"a\":1}}]}]}", 0, NULL},
        {"{\"errors\":[{\"message\":\"bad\",\"location\":{\"file\":\"f\",\"row\":3}}]}", 2,
         "opa: bad (f:3)"},
        {"{\"errors\":[{}]}", 2, "opa: an error without text (?:0)"},
        {"{\"errors\":[7]}", 0, "opa: an error without text (?:0)"},
        {"{\"result\":[{\"expressions\":[{\"value\":{\"a\":1}}]}]}", 1,
         "opa ended with exit code 1: the tail"},
        {"", 137, "opa ended with exit code 137 and says the tail"},
        {"{}", 0, "its rules have no package main: nothing was evaluated"},
        {"{\"result\":[{\"expressions\":[{\"value\":[]}]}]}", 0,
         "its rules have no package main: nothing was evaluated"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(1024);
        DF_JSON cJSON *value = NULL;
        struct df_err err = {0};
        assert_int_equal(df_buf_adds(&out, cases[i].out), 0);
        int result = df_opa_answer(&out, "the tail", cases[i].code, "data.main", &value, &err);
        assert_int_equal(result, cases[i].message ? -1 : 0);
        if (cases[i].message)
            assert_string_equal(err.message, cases[i].message);
        else
            assert_json(value, "{'a':1}", cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_a_value_or_says_why_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
