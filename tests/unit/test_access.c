/* Who may do what, as people are told; test_grant.c compares random grants with an oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spawner/model/access.h"

static cJSON *parsed(const char *text)
{
    DF_FREE char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    cJSON *json = cJSON_Parse(copy);
    assert_non_null(json);
    return json;
}

static void assert_json(const cJSON *got, const char *wanted)
{
    DF_JSON cJSON *other = parsed(wanted);
    DF_FREE char *text = cJSON_PrintUnformatted(got);
    if (!df_json_equal(got, other))
        fail_msg("got %s, wanted %s", text, wanted);
}

static const char grants_text[] =
    "{'root':{'to':{'groups':['platform']},'on':{'all':true},'preset':'read'},"
    "'call':{'to':{'users':['i#ann','i#bob'],'groups':['ops']},'on':{'names':['net','hidden']},"
    "'verbs':['approve','view']},"
    "'team':{'to':{'serviceAccounts':['ci/bot']},'on':{'matchLabels':{'team':'net'}},'verbs':"
    "['view']}}";

/* What both have in front. */
#define READ(by, key, name)                                                                        \
    "{'by':'" by "','role':'read','to':{'" key "':['" name "']},'on':{'all':true},'verbs':['view'" \
    "]}"
#define CALL(to, on)                                                                               \
    "{'by':'auth.grants','grant':'call','to':" to ",'on':{'names':" on                             \
    "},'verbs':['view','approve']}"
#define TEAM                                                                                       \
    "{'by':'auth.grants','grant':'team','to':{'serviceAccounts':['ci/bot']},'on':{'matchLabels':"  \
    "{'team':'net'}},'verbs':['view']}"
#define ROOT                                                                                       \
    "{'by':'auth.grants','grant':'root','to':{'groups':['platform']},'on':{'all':true},'verbs':"   \
    "['view']}"
#define MADE(name, on)                                                                             \
    "{'by':'auth.creator','to':{'creator':'" name "'},'on':" on ",'verbs':['view','plan']}"

static void the_rows_say_who_may_what_and_by_what(void **state)
{
    (void)state;
    static const struct {
        const char *executor, *of, *rows;
    } cases[] = {
        /* of a list of names only the executor's own */
        {"{'metadata':{'name':'net'}}", NULL,
         "[" ROOT "," CALL("{'users':['i#ann','i#bob'],'groups':['ops']}", "['net']") "," READ(
             "auth.tokenFile", "tokens", "ci") "," READ("auth.serviceAccounts", "serviceAccounts",
                                                        "ci/bot") "]"},
        {"{'metadata':{'name':'web','labels':{'team':'net','a':'b'}},'status':{'creator':'i#cyd'}}",
         NULL,
         "[" ROOT "," TEAM "," READ("auth.tokenFile", "tokens", "ci") "," READ(
             "auth.serviceAccounts", "serviceAccounts",
             "ci/bot") "," MADE("i#cyd", "{'names':['web']}") "]"},
        {"{'metadata':{'name':'net'},'status':{'creator':'kubernetes'}}", "ops",
         "[" CALL("{'groups':['ops']}", "['net']") "]"},
        {"{'metadata':{'name':'net'},'status':{'creator':'i#bob'}}", "i#bob",
         "[" CALL("{'users':['i#bob']}", "['net']") "," MADE("i#bob", "{'names':['net']}") "]"},
        {"{'metadata':{'name':'web'}}", "i#bob", "[]"},
        {NULL, "i#bob",
         "[" CALL("{'users':['i#bob']}", "['net','hidden']") "," MADE("i#bob",
                                                                      "{'creator':'i#bob'}") "]"},
        {NULL, "ops", "[" CALL("{'groups':['ops']}", "['net','hidden']") "]"},
        {NULL, "platform", "[" ROOT "]"},
        {NULL, "ci",
         "[" READ("auth.tokenFile", "tokens", "ci") "," MADE("ci", "{'creator':'ci'}") "]"},
        {NULL, "ci/bot",
         "[" TEAM "," READ("auth.serviceAccounts", "serviceAccounts",
                           "ci/bot") "," MADE("ci/bot", "{'creator':'ci/bot'}") "]"},
        {NULL, "nobody", "[]"},
        {NULL, "i#an", "[]"},
    };
    DF_JSON cJSON *grants = parsed(grants_text), *accounts = parsed("{'ci/bot':'read'}");
    DF_JSON cJSON *tokens = parsed("[{'name':'ci','role':'read'}]");
    const struct df_access_rules rules = {grants, accounts, tokens, "auth.tokenFile", "plan"};
    assert_int_equal(df_grants_check(grants, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *executor = cases[i].executor ? parsed(cases[i].executor) : NULL;
        DF_JSON cJSON *rows = cJSON_CreateArray();
        assert_int_equal(df_access_rows(&rules, executor, cases[i].of, rows, NULL), 0);
        assert_json(rows, cases[i].rows);
    }
}

static void an_admin_is_who_has_all_verbs_on_all_executors(void **state)
{
    (void)state;
    static const struct {
        const char *grants, *accounts, *tokens;
        bool any;
    } cases[] = {
        {"{}", "{}", "[]", false},
        {"{}", "{'a/b':'admin'}", "[]", true},
        {"{}", "{'a/b':'write'}", "[{'name':'admin','role':'write'}]", false},
        {"{}", "{}", "[{'name':'a','role':'read'},{'name':'b','role':'admin'}]", true},
        {"{'g':{'to':{'users':['a']},'on':{'all':true},'preset':'admin'}}", "{}", "[]", true},
        {"{'g':{'to':{'users':['a']},'on':{'all':true},'preset':'write'}}", "{}", "[]", false},
        {"{'g':{'to':{'users':['a']},'on':{'names':['net']},'preset':'admin'}}", "{}", "[]", false},
        {"{'g':{'to':{'users':['a']},'on':{'matchLabels':{'all':'true'}},'preset':'admin'}}", "{}",
         "[]", false},
        {"{'g':{'to':{'users':['a']},'on':{'all':true},'verbs':['view','plan','apply','approve',"
         "'destroy','cancel','edit','state','state-write','secrets','grant']}}",
         "{}", "[]", true},
        {"{'g':{'to':{'users':['a']},'on':{'all':true},'verbs':['view','plan','apply','approve',"
         "'destroy','cancel','edit','state','state-write','secrets']}}",
         "{}", "[]", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *grants = parsed(cases[i].grants), *accounts = parsed(cases[i].accounts);
        DF_JSON cJSON *tokens = parsed(cases[i].tokens);
        const struct df_access_rules rules = {grants, accounts, tokens, "", ""};
        if (df_access_has_admin(&rules) != cases[i].any)
            fail_msg("case %zu: %d", i, !cases[i].any);
    }
    assert_false(df_access_has_admin(&(struct df_access_rules){0}));
}

static void a_change_of_labels_says_who_gains_and_who_loses(void **state)
{
    (void)state;
    static const char text[] =
        "{'team':{'to':{'groups':['net-team'],'users':['i#ann']},'on':{'matchLabels':{'t':'net'}},"
        "'verbs':['view','plan']},"
        "'dev':{'to':{'serviceAccounts':['ci/bot']},'on':{'matchLabels':{'t':'db','env':'dev'}},"
        "'preset':'admin'},'name':{'to':{'users':['x']},'on':{'names':['x']},'preset':'read'},"
        "'all':{'to':{'users':['x']},'on':{'all':true},'preset':'read'}}";
#define LOST                                                                                       \
    "'metadata.labels: the grant team applies to x no more and takes view, plan from user i#ann, " \
    "group net-team'"
#define GOT                                                                                        \
    "'metadata.labels: the grant dev applies to x now and gives admin to service account ci/bot'"
    static const struct {
        const char *old, *now, *labels, *said;
    } cases[] = {
        {"{'t':'net','n':'1'}", "{'n':'2','t':'net'}", "[]", "[]"},
        {"{'t':'web'}", "{}", "[]", "[]"},
        {"{'t':'net','n':'1'}", "{'t':'web'}", "['t']", "[" LOST "]"},
        {"{'t':'net'}", "{'t':'db','env':'dev','n':'1'}", "['t','env']", "[" LOST "," GOT "]"},
        {"{'t':'db'}", "{'t':'db','env':'dev'}", "['env']", "[" GOT "]"},
        {"{}", "{'env':'dev'}", "[]", "[]"},
    };
    DF_JSON cJSON *grants = parsed(text);
    assert_int_equal(df_grants_check(grants, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *old = parsed("{'metadata':{'name':'x'}}"), *doc = cJSON_Duplicate(old, true);
        DF_JSON cJSON *labels = cJSON_CreateArray(), *said = cJSON_CreateArray();
        cJSON_AddItemToObject(cJSON_GetObjectItem(old, "metadata"), "labels", parsed(cases[i].old));
        cJSON_AddItemToObject(cJSON_GetObjectItem(doc, "metadata"), "labels", parsed(cases[i].now));
        assert_int_equal(df_access_changes(grants, old, doc, labels, said, NULL), 0);
        assert_json(labels, cases[i].labels);
        assert_json(said, cases[i].said);
        assert_int_equal(df_access_changes(NULL, old, doc, labels, said, NULL), 0);
    }
}

static void a_long_list_of_names_is_counted(void **state)
{
    (void)state;
    DF_JSON cJSON *grants = parsed("{'g':{'to':{'users':[]},'on':{'matchLabels':{'t':'a'}},"
                                   "'preset':'read'}}");
    DF_JSON cJSON *old = parsed("{'metadata':{'name':'x'}}"), *said = cJSON_CreateArray();
    DF_JSON cJSON *doc = parsed("{'metadata':{'name':'x','labels':{'t':'a'}}}");
    cJSON *users =
        cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(grants, "g"), "to"), "users");
    for (int i = 0; i < 23; i++)
        cJSON_AddItemToArray(users, cJSON_CreateString("u"));
    assert_int_equal(df_access_changes(grants, old, doc, NULL, said, NULL), 0);
    assert_non_null(strstr(said->child->valuestring, "user u and 3 more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_say_who_may_what_and_by_what),
        cmocka_unit_test(an_admin_is_who_has_all_verbs_on_all_executors),
        cmocka_unit_test(a_change_of_labels_says_who_gains_and_who_loses),
        cmocka_unit_test(a_long_list_of_names_is_counted),
    };
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
