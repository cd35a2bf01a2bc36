/* What a playbook gets as variables: every vector of the contract, and who replaces whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/ansible/extra_vars.h"
#include "tests/unit/json_words.h"

struct vector {
    const char *text, *printed;
};

static void assert_vectors(const struct vector *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        DF_JSON cJSON *value = NULL;
        struct df_err err = {0};
        if (df_extra_vars_value(rows[i].text, &value, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        DF_FREE char *printed = df_json_print_nul(value);
        if (strcmp(printed, rows[i].printed) != 0)
            fail_msg("%s: %s is not %s", rows[i].text, printed, rows[i].printed);
    }
}

#define STRING(s)                                                                                  \
    {                                                                                              \
        s, "\"" s "\""                                                                             \
    }
#define SAME(s)                                                                                    \
    {                                                                                              \
        s, s                                                                                       \
    }

static void parameters_become_what_go_would_send(void **state)
{
    (void)state;
    static const struct vector rows[] = {
        STRING(""),
        SAME("3"),
        {"-0", "0"},
        {"+5", "5"},
        {"007", "7"},
        {"1_000", "1000"},
        {"1_000.5", "1000.5"},
        STRING("0x10"),
        {"0x1p4", "16"},
        STRING("0b11"),
        {"3.0", "3"},
        {"1.10", "1.1"},
        SAME("0.75"),
        {".5", "0.5"},
        {"5.", "5"},
        {"1e3", "1000"},
        {"1E21", "1e+21"},
        SAME("1e-7"),
        {"1e20", "100000000000000000000"},
        STRING("1e400"),
        STRING("12e4567"),
        SAME("9223372036854775807"),
        {"9223372036854775808", "9223372036854776000"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        SAME("true"),
        {"TRUE", "true"},
        {"True", "true"},
        {"t", "true"},
        {"T", "true"},
        SAME("false"),
        {"f", "false"},
        {"F", "false"},
        STRING("tRUE"),
        STRING("yes"),
        STRING("no"),
        STRING("on"),
        STRING("null"),
        STRING(" 3"),
        STRING("3 "),
        SAME("[1,2,3]"),
        SAME("[]"),
        SAME("{}"),
        STRING("[1,2,"),
        STRING("{not json}"),
        STRING("[1] "),
        STRING("512Mi"),
    };
    assert_vectors(rows, DF_ARRAY_SIZE(rows));
}

static void parameters_at_the_edges_become_what_go_would_send(void **state)
{
    (void)state;
    static const struct vector rows[] = {
        SAME("-9223372036854775808"),
        {"-9223372036854775809", "-9223372036854776000"},
        {"-0.0", "-0"},
        {"+0.0", "0"},
        {"-.5e-3", "-0.0005"},
        {"1e-400", "0"},
        {"0_1", "1"},
        STRING("1__0"),
        {"0x_1p4", "16"},
        {"0X1P-2", "0.25"},
        STRING("0x1.8"),
        STRING("0o17"),
        {"1e+3", "1000"},
        {"1.", "1"},
        STRING("1d"),
        STRING("1f"),
        STRING("e5"),
        STRING("."),
        STRING("+"),
        STRING("-"),
        STRING("1,000"),
        STRING("１"),
        SAME("1"),
        SAME("0"),
        {"\"x\"", "\"\\\"x\\\"\""},
        STRING("[nan]"),
        STRING("[1]{}"),
        {"{\"a\":9007199254740993}", "{\"a\":9007199254740992}"},
        {"{\"a\":1,\"a\":2}", "{\"a\":2}"},
        {"[\"\\ud800\"]", "[\"\xef\xbf\xbd\"]"},
        SAME("[\"<&>\"]"),
        STRING("é"),
    };
    assert_vectors(rows, DF_ARRAY_SIZE(rows));
}

/* Computed with Go. */
static void rules_beyond_the_contract_are_those_of_go_as_well(void **state)
{
    (void)state;
    static const struct vector rows[] = {
        STRING("_1"),
        STRING("1_"),
        STRING("1_.5"),
        STRING("1._5"),
        STRING("1_e5"),
        {"1e1_0", "10000000000"},
        {"0x1_0p1_0", "16384"},
        STRING("0x1_p4"),
        STRING("0xp4"),
        STRING("0x"),
        STRING("1e"),
        STRING("1e+"),
        STRING("1e_5"),
        STRING("1.2.3"),
        STRING("nan(1)"),
        STRING("+nan"),
        {"5e-324", "5e-324"},
        {"0.000001", "0.000001"},
        {"0.0000009999", "9.999e-7"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"123456.789e-3", "123.456789"},
        {"[1e400]", "\"[1e400]\""},
        {"[ 1.50 , {\"b\" : [ ] , \"a\":-0.0} ]", "[1.5,{\"b\":[],\"a\":-0}]"},
        {"{\"a\":1,\"b\":2,\"a\":3,\"b\":4,\"a\":5}", "{\"b\":4,\"a\":5}"},
        {"[\"\\ud83d\\ude00\"]", "[\"\xf0\x9f\x98\x80\"]"},
        {"[\"\\ud800\\u0041\"]", "[\"\xef\xbf\xbd"
                                 "A\"]"},
        {"[\"\\ud800\\ud83d\\ude00\"]", "[\"\xef\xbf\xbd\xf0\x9f\x98\x80\"]"},
        {"[\"\\\\ud800\"]", "[\"\\\\ud800\"]"},
        {"[\"\\udc00\\u0000\"]", "[\"\xef\xbf\xbd\\u0000\"]"},
        {"[\"\\udc00\\udc00\"]", "[\"\xef\xbf\xbd\xef\xbf\xbd\"]"},
        {"[01]", "\"[01]\""},
        {"[1,]", "\"[1,]\""},
        {"{\"a\":}", "\"{\\\"a\\\":}\""},
        {"{a:1}", "\"{a:1}\""},
        {"[tru]", "\"[tru]\""},
        {"[true,null,\"\"]", "[true,null,\"\"]"},
        {"[\"a]", "\"[\\\"a]\""},
        {"[[1]", "\"[[1]\""},
    };
    assert_vectors(rows, DF_ARRAY_SIZE(rows));
}

static void what_json_cannot_say_is_refused_by_the_name_of_its_parameter(void **state)
{
    (void)state;
    static const char *const texts[] = {"inf", "-Inf", "Infinity", "nan", "NaN"};
    const struct df_extra_owner owner = {.name = "restart"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_JSON cJSON *parameters = cJSON_CreateObject(), *vars = NULL;
        struct df_err err = {0};
        assert_int_equal(df_json_add_str(parameters, "LIMIT", texts[i], NULL), 0);
        assert_int_equal(df_extra_vars(parameters, &owner, NULL, &vars, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_non_null(strstr(err.message, "spec.workflow.parameters.LIMIT: \""));
        assert_non_null(strstr(err.message, texts[i]));
    }
}

/* The variables themselves are a level: they are read again when a lost launch is looked for. */
static void json_beyond_the_limit_of_depth_is_refused(void **state)
{
    (void)state;
    char text[2 * DF_LIMIT_JSON_DEPTH + 1];
    DF_JSON cJSON *value = NULL, *read = NULL, *vars = cJSON_CreateObject();
    struct df_err err = {0};
    memset(text, '[', DF_LIMIT_JSON_DEPTH);
    memset(text + DF_LIMIT_JSON_DEPTH, ']', DF_LIMIT_JSON_DEPTH);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(df_extra_vars_value(text, &value, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "63 levels"));
    text[sizeof(text) - 2] = '\0';
    assert_int_equal(df_extra_vars_value(text + 1, &value, &err), 0);
    assert_true(cJSON_IsArray(value));
    assert_int_equal(df_json_add(vars, "A", DF_TAKE(value), NULL), 0);
    DF_FREE char *printed = df_json_print_nul(vars);
    assert_int_equal(df_json_parse_nul(printed, strlen(printed), &read, NULL), 0);
}

static void lists_beside_each_other_are_not_deep(void **state)
{
    (void)state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_KIB);
    for (int i = 0; i < 2 * DF_LIMIT_JSON_DEPTH; i++)
        (void)df_buf_adds(&text, i ? ",[]" : "[[]");
    (void)df_buf_addc(&text, ']');
    DF_JSON cJSON *value = NULL;
    assert_int_equal(df_extra_vars_value(df_buf_str(&text), &value, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(value), 2 * DF_LIMIT_JSON_DEPTH);
}

static void assert_vars(const char *parameters, const struct df_extra_owner *owner,
                        const char *config_maps, const char *expected)
{
    DF_JSON cJSON *given = json(parameters), *maps = json(config_maps), *vars = NULL;
    struct df_err err = {0};
    if (df_extra_vars(given, owner, maps, &vars, &err) < 0)
        fail_msg("%s: %s", parameters, err.message);
    DF_FREE char *printed = df_json_print_nul(vars);
    DF_JSON cJSON *seen = json(printed);
    assert_json(seen, expected, parameters);
}

#define OWNER "'WFE_NAME':'w','WFE_NAMESPACE':'kw','RR_NAME':'rr-w','RR_NAMESPACE':'kw'"

static const struct df_extra_owner owner_w = {"w", "kw", "rr-w", "kw", NULL};

/* UT-WE-015-001, -003 */
static void each_parameter_becomes_a_variable(void **state)
{
    (void)state;
    assert_vars("{'NAMESPACE':'default','REPLICAS':'3'}", &owner_w, "[]",
                "{'NAMESPACE':'default','REPLICAS':3," OWNER "}");
    assert_vars("{'REPLICAS':'3','ENABLED':'true','THRESHOLD':'0.75','NAME':'hello',"
                "'LIST':'[1,2,3]'}",
                &owner_w, "[]",
                "{'REPLICAS':3,'ENABLED':true,'THRESHOLD':0.75,'NAME':'hello',"
                "'LIST':[1,2,3]," OWNER "}");
}

/* UT-WE-015-006 */
static void a_playbook_learns_whose_run_it_is(void **state)
{
    (void)state;
    static const struct df_extra_owner owner = {"we-rr-abc123", "kw", "rr-we-rr-abc123", "kw",
                                                "0d5f-1"};
    assert_vars("{'TARGET_NAMESPACE':'demo-ns','NEW_MEMORY_LIMIT':'512Mi'}", &owner, "[]",
                "{'TARGET_NAMESPACE':'demo-ns','NEW_MEMORY_LIMIT':'512Mi',"
                "'WFE_NAME':'we-rr-abc123','WFE_NAMESPACE':'kw','RR_NAME':'rr-we-rr-abc123',"
                "'RR_NAMESPACE':'kw','DAYFLY_UID':'0d5f-1'}");
}

/* UT-WE-015-007, and BuildExtraVars(nil) */
static void an_owner_without_a_request_has_empty_variables_for_it(void **state)
{
    (void)state;
    static const struct df_extra_owner owner = {"wfe-no-rr", "default", NULL, NULL, NULL};
    DF_JSON cJSON *vars = NULL;
    assert_int_equal(df_extra_vars(NULL, &owner, NULL, &vars, NULL), 0);
    assert_json(vars,
                "{'WFE_NAME':'wfe-no-rr','WFE_NAMESPACE':'default','RR_NAME':'',"
                "'RR_NAMESPACE':''}",
                "no request");
}

/* UT-WE-243-042 */
static void no_parameter_replaces_the_owner_or_a_config_map(void **state)
{
    (void)state;
    assert_vars("{'WFE_NAME':'spoofed-1','WFE_NAMESPACE':'spoofed-2','RR_NAME':'spoofed-3',"
                "'RR_NAMESPACE':'nan','KUBERNAUT_CONFIGMAP_A_K':'5'}",
                &owner_w, "[{'metadata':{'name':'a'},'data':{'k':'6'}}]",
                "{" OWNER ",'KUBERNAUT_CONFIGMAP_A_K':'6'}");
}

/* UT-WE-015-040, -041 */
static void data_of_config_maps_stays_text(void **state)
{
    (void)state;
    assert_vars("{'TARGET_NAMESPACE':'demo-ns'}", &owner_w,
                "[{'metadata':{'name':'app-config'},'data':{'log-level':'debug','max-retries':'5'},"
                "'binaryData':{'logo':'AAAA'}},"
                "{'metadata':{'name':'app-settings'},'data':{'timeout':'30s','a.b/c':'true'}},"
                "{'metadata':{'name':'empty'}}]",
                "{'TARGET_NAMESPACE':'demo-ns'," OWNER ","
                "'KUBERNAUT_CONFIGMAP_APP_CONFIG_LOG_LEVEL':'debug',"
                "'KUBERNAUT_CONFIGMAP_APP_CONFIG_MAX_RETRIES':'5',"
                "'KUBERNAUT_CONFIGMAP_APP_SETTINGS_TIMEOUT':'30s',"
                "'KUBERNAUT_CONFIGMAP_APP_SETTINGS_A.B/C':'true'}");
}

static void two_keys_that_become_one_variable_are_refused(void **state)
{
    (void)state;
    DF_JSON cJSON *maps = json("[{'metadata':{'name':'a'},'data':{'my-key':'1','MY_KEY':'2'}}]");
    DF_JSON cJSON *vars = NULL;
    struct df_err err = {0};
    assert_int_equal(df_extra_vars(NULL, &owner_w, maps, &vars, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "KUBERNAUT_CONFIGMAP_A_MY_KEY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_become_what_go_would_send),
        cmocka_unit_test(parameters_at_the_edges_become_what_go_would_send),
        cmocka_unit_test(rules_beyond_the_contract_are_those_of_go_as_well),
        cmocka_unit_test(what_json_cannot_say_is_refused_by_the_name_of_its_parameter),
        cmocka_unit_test(json_beyond_the_limit_of_depth_is_refused),
        cmocka_unit_test(lists_beside_each_other_are_not_deep),
        cmocka_unit_test(each_parameter_becomes_a_variable),
        cmocka_unit_test(a_playbook_learns_whose_run_it_is),
        cmocka_unit_test(an_owner_without_a_request_has_empty_variables_for_it),
        cmocka_unit_test(no_parameter_replaces_the_owner_or_a_config_map),
        cmocka_unit_test(data_of_config_maps_stays_text),
        cmocka_unit_test(two_keys_that_become_one_variable_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
