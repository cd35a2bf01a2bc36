/* The JSON of a plan without what is sensitive in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/plan_masked.h"
#include "tests/unit/json_words.h"

#define X "'(sensitive)'"

static void what_the_tool_marks_is_masked_and_the_rest_stays(void **state)
{
    (void)state;
    static const struct {
        const char *plan, *want;
    } cases[] = {
        {"{'resource_changes':[{'type':'t','change':{'actions':['update'],"
         "'before':{'a':1,'b':{'c':'x','d':2}},'before_sensitive':{'b':{'c':true}},"
         "'after':{'a':1,'b':{'c':'y','d':2}},'after_sensitive':{'a':true,'b':{'c':true}}}}]}",
         "{'resource_changes':[{'type':'t','change':{'actions':['update'],"
         "'before':{'a':1,'b':{'c':" X ",'d':2}},'before_sensitive':{'b':{'c':true}},"
         "'after':{'a':" X ",'b':{'c':" X
         ",'d':2}},'after_sensitive':{'a':true,'b':{'c':true}}}}]}"},
        /* lists by their places, whole values, and what is not there */
        {"{'c':{'after':[1,[2,3],4],'after_sensitive':[false,[true,false]]}}",
         "{'c':{'after':[1,[" X ",3],4],'after_sensitive':[false,[true,false]]}}"},
        {"{'c':{'after':{'a':{'b':1},'n':null},'after_sensitive':true,'before':null,"
         "'before_sensitive':{'a':true}}}",
         "{'c':{'after':" X
         ",'after_sensitive':true,'before':null,'before_sensitive':{'a':true}}}"},
        {"{'c':{'after':{'n':null,'e':5},'after_sensitive':{'n':true,'m':true,'e':{'f':true}}}}",
         "{'c':{'after':{'n':null,'e':5},'after_sensitive':{'n':true,'m':true,'e':{'f':true}}}}"},
        {"{'planned_values':{'outputs':{'o':{'sensitive':true,'value':[1]},'p':{'sensitive':false,"
         "'value':[1]}},'root_module':{'child_modules':[{'resources':[{'values':{'a':1,'b':2},"
         "'sensitive_values':{'a':true}}]}]}}}",
         "{'planned_values':{'outputs':{'o':{'sensitive':true,'value':" X
         "},'p':{'sensitive':false,"
         "'value':[1]}},'root_module':{'child_modules':[{'resources':[{'values':{'a':" X ",'b':2},"
         "'sensitive_values':{'a':true}}]}]}}}"},
        {"{'prior_state':{'values':{'root_module':{'resources':[{'values':{'a':1},"
         "'sensitive_values':{'a':true}}]}}}}",
         "{'prior_state':{'values':{'root_module':{'resources':[{'values':{'a':" X "},"
         "'sensitive_values':{'a':true}}]}}}}"},
        {"{'variables':{'v':{'value':7},'w':{'value':7}},'configuration':{'root_module':{'"
         "variables':"
         "{'v':{'sensitive':true},'w':{}}}}}",
         "{'variables':{'v':{'value':" X "},'w':{'value':7}},'configuration':{'root_module':"
         "{'variables':{'v':{'sensitive':true},'w':{}}}}}"},
        /* names that a module gives */
        {"{'planned_values':{'outputs':{'value':{'sensitive':true,'value':1},'sensitive':{"
         "'sensitive':false,'value':5}}},'output_changes':{'after':{'after':2,'after_sensitive':"
         "true},'after_sensitive':{'after':5,'after_sensitive':false}}}",
         "{'planned_values':{'outputs':{'value':{'sensitive':true,'value':" X "},'sensitive':{"
         "'sensitive':false,'value':5}}},'output_changes':{'after':{'after':" X
         ",'after_sensitive':true},'after_sensitive':{'after':5,'after_sensitive':false}}}"},
        {"{'variables':{'after':{'value':'a_bucket'}},'configuration':{'root_module':{'variables':"
         "{'after':{'sensitive':true}},'module_calls':{'after':{'source':'./a_bucket','module':{"
         "'resources':[{'type':'a_bucket','expressions':{'n':{'constant_value':'a_bucket'}}}]}}}}}"
         "}",
         "{'variables':{'after':{'value':" X "}},'configuration':{'root_module':{'variables':"
         "{'after':{'sensitive':true}},'module_calls':{'after':{'source':'./a_bucket','module':{"
         "'resources':[{'type':'a_bucket','expressions':{'n':{'constant_value':" X "}}}]}}}}}}"},
        /* values are nobody's marks */
        {"{'c':{'after':{'before':'x','before_sensitive':true}}}",
         "{'c':{'after':{'before':'x','before_sensitive':true}}}"},
    };
    DF_STRS struct df_strs none = {0};
    struct df_redact_set *set = NULL;
    assert_int_equal(df_redact_set_new(&none, &set, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *plan = json(cases[i].plan);
        assert_int_equal(df_plan_mask(plan, set, NULL), 0);
        assert_json(plan, cases[i].want, cases[i].plan);
    }
    df_redact_set_free(set);
}

/* A module that makes the name of a type or of an attribute sensitive hides neither from a policy.
 */
static void copies_of_a_sensitive_value_are_masked_in_values_and_nowhere_else(void **state)
{
    (void)state;
    static const char plan_text[] =
        "{'resource_changes':[{'type':'aws_bucket','address':'aws_bucket.known-secret','change':"
        "{'actions':['create'],'after':{'a':'aws_bucket','b':'x "
        "aws_bucket','c':'short','s':'short','aws_bucket':true,'known-secret':[{'aws_bucket':1}],"
        "'l':['an aws_bucket','z'],'n':4815162342,'o':48151,"
        "'k':'known-secret'},'after_sensitive':{'a':true,'s':true}}}],'configuration':{'root_"
        "module':"
        "{'variables':{'v':{'default':'aws_bucket'}},'resources':[{'type':'aws_bucket',"
        "'expressions':{'a':{'constant_value':'aws_bucket'}}}]}}}";
    static const char want[] =
        "{'resource_changes':[{'type':'aws_bucket','address':'aws_bucket.known-secret','change':"
        "{'actions':['create'],'after':{'a':" X ",'b':" X ",'c':'short','s':" X ","
        "'aws_bucket':true,'known-secret':[{'aws_bucket':1}],'l':[" X ",'z'],'n':" X ",'o':48151,"
        "'k':" X "},'after_sensitive':{'a':true,'s':true}}}],'configuration':{'root_module':"
        "{'variables':{'v':{'default':" X "}},'resources':[{'type':'aws_bucket',"
        "'expressions':{'a':{'constant_value':" X "}}}]}}}";
    DF_STRS struct df_strs known = {0};
    struct df_redact_set *set = NULL;
    DF_JSON cJSON *plan = json(plan_text);
    assert_int_equal(df_strs_add(&known, "known-secret"), 0);
    assert_int_equal(df_strs_add(&known, "4815162342"), 0);
    assert_int_equal(df_redact_set_new(&known, &set, NULL), 0);
    assert_int_equal(df_plan_mask(plan, set, NULL), 0);
    assert_json(plan, want, "masked");
    df_redact_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_tool_marks_is_masked_and_the_rest_stays),
        cmocka_unit_test(copies_of_a_sensitive_value_are_masked_in_values_and_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
