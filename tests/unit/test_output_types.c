/* What the type of an output may say of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/output_types.h"
#include "tests/unit/json_words.h"

static void a_type_names_what_the_value_shows_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *output, *type;
    } cases[] = {
        {"{'type':'string','value':'v'}", "'string'"},
        {"{'type':['map','string'],'value':{'k':'v'}}", "['map','string']"},
        {"{'type':['object',{'a':'string'}],'value':{'a':'***'}}", "['object',{'a':'string'}]"},
        {"{'type':['object',{'hunter22':'string'}],'value':{'***':'v'}}",
         "['object',{'***':'string'}]"},
        {"{'type':['object',{'a':'string','hunter22':'bool','hunter23':['list','bool']}],"
         "'value':{'a':'v','***':true,'*** 2':[]}}",
         "['object',{'a':'string','***':'bool','*** 2':['list','bool']}]"},
        {"{'type':['tuple',[['object',{'b':['object',{'hunter22':'string'}]}]]],"
         "'value':[{'b':{'***':'v'}}]}",
         "['tuple',[['object',{'b':['object',{'***':'string'}]}]]]"},
        /* A name that is shown looks like a hidden one. */
        {"{'type':['object',{'***':'bool','hunter22':'string'}],'value':{'***':true,'*** 2':'v'}}",
         "['object',{'***':'bool','*** 2':'string'}]"},
        /* Nothing of the value is shown: another step wrote it, or it is sensitive. */
        {"{'type':['object',{'hunter22':'string'}],'value':'***'}", "['object',{'***':'string'}]"},
        {"{'sensitive':true,'type':['object',{'hunter22':'string'}]}",
         "['object',{'***':'string'}]"},
        {"{'type':['list',['object',{'hunter22':'string'}]],'value':[]}",
         "['list',['object',{'***':'string'}]]"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *outputs = cJSON_CreateObject(), *want = json(cases[i].type);
        assert_int_equal(df_json_add(outputs, "o", json(cases[i].output), NULL), 0);
        assert_int_equal(df_output_types_hide(outputs, NULL), 0);
        DF_FREE char *got = df_json_print(df_json_at(outputs, "o.type"));
        DF_FREE char *wanted = df_json_print(want);
        assert_string_equal(got, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_names_what_the_value_shows_and_nothing_else),
    };
    return cmocka_run_group_tests_name("output_types", tests, NULL, NULL);
}
