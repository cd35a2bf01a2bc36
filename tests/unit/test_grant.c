/* The grants of the configuration. */
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

static const char grants_text[] =
    "{'readers':{'to':{'groups':['all','ops']},'on':{'all':true},'preset':'read'},"
    "'ops':{'to':{'groups':['ops'],'users':['i#ann']},'on':{'all':true},'preset':'admin'},"
    "'robots':{'to':{'serviceAccounts':['ci/bot']},'on':{'all':true},'preset':'approver'},"
    "'writers':{'to':{'users':['i#ann','i#bob']},'on':{'all':true},'preset':'write'}}";

static void all_grants_that_name_somebody_count(void **state)
{
    (void)state;
    static const struct {
        struct df_grantee who;
        const char *groups;
        df_verbs all;
    } cases[] = {
        {{.user = "i#ann"}, "[]", DF_VERBS_ADMIN},
        {{.user = "i#bob"}, "[]", DF_VERBS_WRITE},
        {{.user = "i#bob"}, "['all']", DF_VERBS_WRITE},
        {{.user = "i#bob"}, "['ops','all']", DF_VERBS_ADMIN},
        {{.user = "i#cyd"}, "['all']", DF_VERB_VIEW},
        {{.user = "i#cyd"}, "['ALL','al','all ']", 0},
        {{.user = "ann"}, "[]", 0},
        {{.user = "ops"}, "[]", 0},
        {{.user = "i#cyd"}, "['i#ann']", 0},
        {{.user = "ci/bot"}, "['ci/bot']", 0},
        {{.account = "ci/bot"}, "[]", DF_VERB_VIEW | DF_VERB_APPROVE},
        {{.account = "i#ann"}, "[]", 0},
    };
    DF_JSON cJSON *grants = parsed(grants_text);
    struct df_granted g;
    assert_int_equal(df_grants_check(grants, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *groups = parsed(cases[i].groups);
        struct df_grantee who = cases[i].who;
        who.groups = groups;
        assert_int_equal(df_grants_of(grants, &who, &g, NULL), 0);
        assert_int_equal(g.all, cases[i].all);
        assert_int_equal(g.some_count, 0);
        df_granted_free(&g);
    }
    assert_int_equal(df_grants_of(NULL, &(struct df_grantee){.user = "i#ann"}, &g, NULL), 0);
    assert_int_equal(g.all, 0);
    df_granted_free(&g);
}

static void a_role_is_the_highest_whose_verbs_are_all_there(void **state)
{
    (void)state;
    static const struct {
        df_verbs verbs;
        enum df_role role;
        const char *said;
    } cases[] = {
        {0, DF_ROLE_NONE, "none"},
        {DF_VERB_APPLY, DF_ROLE_NONE, "apply"},
        {DF_VERB_VIEW, DF_ROLE_READ, "read"},
        {DF_VERB_VIEW | DF_VERB_PLAN, DF_ROLE_READ, "view, plan"},
        {DF_VERBS_WRITE & ~DF_VERB_CANCEL, DF_ROLE_READ, "view, plan, apply, approve, state"},
        {DF_VERBS_WRITE, DF_ROLE_WRITE, "write"},
        {DF_VERBS_ADMIN & ~DF_VERB_GRANT, DF_ROLE_WRITE,
         "view, plan, apply, approve, destroy, cancel, edit, state, state-write, secrets"},
        {DF_VERBS_ADMIN, DF_ROLE_ADMIN, "admin"},
    };
    char text[DF_VERBS_TEXT];
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        assert_int_equal(df_verbs_role(cases[i].verbs), cases[i].role);
        assert_string_equal(df_verbs_say(cases[i].verbs, text), cases[i].said);
    }
    for (size_t i = 0; df_preset_names[i]; i++)
        assert_true(df_preset_verbs(df_preset_names[i]) & DF_VERB_VIEW);
    assert_int_equal(df_preset_verbs("none"), 0);
}

static void a_refusal_names_the_verbs_that_lack_and_the_role_that_has_them(void **state)
{
    (void)state;
    struct df_err err = {0};
    assert_int_equal(df_verbs_require(DF_VERBS_WRITE, DF_VERB_APPLY, "a run", "net", &err), 0);
    assert_int_equal(
        df_verbs_require(DF_VERBS_WRITE, DF_VERB_VIEW | DF_VERB_DESTROY, "destroy", "net", &err),
        -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.reason, "Forbidden");
    assert_string_equal(err.message,
                        "destroy needs the role admin; yours is write: on executor net "
                        "you may not destroy");
    assert_int_equal(
        df_verbs_require(DF_VERB_VIEW | DF_VERB_PLAN, DF_VERBS_TOOL, "push", NULL, &err), -1);
    assert_string_equal(err.message, "push needs the role write; yours is view, plan: on this "
                                     "executor you may not apply, state");
}

#define ON_SOME "'to':{'users':['a']},'verbs':['view','plan'],'on':"

static void every_fault_is_named_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *grant, *said;
    } cases[] = {
        {"7", "g: must be a mapping"},
        {"{'to':{},'on':{'all':true},'preset':'read'}", "g.to: must name somebody"},
        {"{'to':{'users':[],'groups':[]},'on':{'all':true},'preset':'read'}",
         "g.to: must name somebody"},
        {"{'to':{'users':['']},'on':{'all':true},'preset':'read'}", "g.to.users[0]"},
        {"{'to':{'teams':['a']},'on':{'all':true},'preset':'read'}", "g.to.teams"},
        {"{'to':{'serviceAccounts':['bot']},'on':{'all':true},'preset':'read'}",
         "g.to.serviceAccounts[0]: \"bot\" is not namespace/name"},
        {"{'to':{'users':['a']},'on':{'all':true},'preset':'owner'}", "g.preset: \"owner\""},
        {"{'to':{'users':['a']},'on':{'all':true},'verbs':['view','delete']}",
         "g.verbs[1]: \"delete\" is not one of view, plan"},
        {"{'to':{'users':['a']},'on':{'all':true},'verbs':[]}", "g.verbs: is empty"},
        {"{'to':{'users':['a']},'on':{'all':true},'verbs':['view'],'preset':'read'}",
         "g: must have either verbs or preset"},
        {"{'to':{'users':['a']},'on':{'all':true}}", "g: must have either verbs or preset"},
        {"{'to':{'users':['a']},'on':{'all':true},'preset':'read','deny':true}", "g.deny"},
        {"{'to':{'users':['a']},'preset':'read'}", "g.on: is required"},
        {"{" ON_SOME "{'all':1}}", "g.on.all"},
        {"{" ON_SOME "{'all':false}}", "g.on.all: must be true, or left out"},
        {"{" ON_SOME "{}}", "g.on: must say which executors"},
        {"{" ON_SOME "{'names':[]}}", "g.on: must say which executors"},
        {"{" ON_SOME "{'matchLabels':{}}}", "g.on: must say which executors"},
        {"{" ON_SOME "{'all':true,'names':['net']}}", "g.on: must say which executors"},
        {"{" ON_SOME "{'names':['net'],'matchLabels':{'team':'net'}}}",
         "g.on: must say which executors"},
        {"{" ON_SOME "{'names':['*']}}", "g.on.names[0]"},
        {"{" ON_SOME "{'matchLabels':{'team':['net']}}}", "g.on.matchLabels"},
        {"{" ON_SOME "{'matchLabels':{'team':'*'}}}", "g.on.matchLabels"},
        {"{" ON_SOME "{'labels':{'team':'net'}}}", "g.on.labels"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *grants = cJSON_CreateObject();
        struct df_err err = {0};
        cJSON_AddItemToObject(grants, "g", parsed(cases[i].grant));
        assert_int_equal(df_grants_check(grants, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, cases[i].said))
            fail_msg("no \"%s\" in: %s", cases[i].said, err.message);
    }
}

/* ---- on some executors ---- */

static df_verbs given(const char *grants_text_, const char *user, const char *name, const char *doc)
{
    DF_JSON cJSON *grants = parsed(grants_text_);
    DF_JSON cJSON *executor = doc ? parsed(doc) : NULL;
    const struct df_grantee who = {.user = user};
    struct df_granted g;
    assert_int_equal(df_grants_check(grants, NULL), 0);
    assert_int_equal(df_grants_of(grants, &who, &g, NULL), 0);
    g.creator = DF_VERBS_ADMIN;
    df_verbs verbs = df_granted_on(&g, user, name, executor);
    df_granted_free(&g);
    return verbs;
}

static void a_grant_is_on_executors_by_name_or_by_all_of_its_labels(void **state)
{
    (void)state;
    static const char grants[] =
        "{'names':{'to':{'users':['ann']},'on':{'names':['net','db']},'preset':'approver'},"
        "'team':{'to':{'users':['ann']},'on':{'matchLabels':{'team':'net','env':'dev'}},"
        "'verbs':['view','plan']}}";
    static const struct {
        const char *user, *name, *doc;
        df_verbs verbs;
    } cases[] = {
        {"ann", "net", NULL, DF_VERB_VIEW | DF_VERB_APPROVE},
        {"ann", "web", NULL, 0},
        {"bob", "net", NULL, 0},
        {"ann", "web", "{'metadata':{'labels':{'team':'net','env':'dev','a':'b'}}}",
         DF_VERB_VIEW | DF_VERB_PLAN},
        {"ann", "db", "{'metadata':{'labels':{'team':'net','env':'dev'}}}",
         DF_VERB_VIEW | DF_VERB_PLAN | DF_VERB_APPROVE},
        {"ann", "web", "{'metadata':{'labels':{'team':'net'}}}", 0},
        {"ann", "web", "{'metadata':{'labels':{'team':'net','env':'prod'}}}", 0},
        {"ann", "web", "{'metadata':{'labels':{'team':'net','ENV':'dev'}}}", 0},
        {"ann", "web", "{'metadata':{}}", 0},
        {"bob", "web", "{'metadata':{'labels':{'team':'net','env':'dev'}}}", 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_int_equal(given(grants, cases[i].user, cases[i].name, cases[i].doc), cases[i].verbs);
}

static void a_creator_has_more_only_while_he_may_create(void **state)
{
    (void)state;
    static const char mine[] = "{'status':{'creator':'ann'}}";
    static const char write[] = "{'a':{'to':{'users':['ann','kubernetes']},'on':{'all':true},"
                                "'preset':'write'}}";
    assert_int_equal(given(write, "ann", "net", mine), DF_VERBS_ADMIN);
    assert_int_equal(given(write, "ann", "net", "{'status':{'creator':'bob'}}"), DF_VERBS_WRITE);
    assert_int_equal(given(write, "ann", "net", "{'status':{}}"), DF_VERBS_WRITE);
    assert_int_equal(given(write, "ann", "net", NULL), DF_VERBS_WRITE);
    /* the name of nobody */
    assert_int_equal(given(write, "kubernetes", "net", "{'status':{'creator':'kubernetes'}}"),
                     DF_VERBS_WRITE);
    assert_int_equal(given("{'a':{'to':{'users':['ann']},'on':{'all':true},'preset':'read'}}",
                           "ann", "net", mine),
                     DF_VERB_VIEW);
    assert_int_equal(given("{}", "ann", "net", mine), 0);
}

/* ---- random grants, and an oracle that thinks in another way ---- */

static unsigned seed = 20261130;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245U + 12345U;
    return (seed >> 16) % n;
}

enum { PEOPLE = 3, EXECUTORS = 4, GRANTS = 6 };

struct grant {
    unsigned users, groups; /* who: bit n is user n or group n */
    unsigned on;            /* 0: all; 1: the names of `which`; 2: the label of `which` */
    unsigned which;
    df_verbs verbs;
};

/* Executor n is called "xn" and has the labels l0 and l1, the bits of n. Person n is in group n
 * and in group 0. */
static df_verbs oracle(const struct grant *grants, size_t n, unsigned person, unsigned executor)
{
    df_verbs verbs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        bool named = (g->users >> person & 1) || (g->groups & (1U | 1U << person));
        bool named_on = g->which >> executor & 1;
        bool labelled = (executor >> (g->which & 1) & 1) == (g->which >> 1 & 1);
        bool on = g->on == 0 || (g->on == 1 ? named_on : labelled);
        if (named && on)
            verbs |= g->verbs;
    }
    return verbs;
}

static void add_names(cJSON *to, const char *key, char letter, unsigned bits)
{
    cJSON *list = cJSON_AddArrayToObject(to, key);
    for (unsigned i = 0; i < 8; i++)
        if (bits >> i & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString((char[]){letter, (char)('0' + i), 0}));
}

static cJSON *as_json(const struct grant *g)
{
    cJSON *grant = cJSON_CreateObject(), *verbs = cJSON_AddArrayToObject(grant, "verbs");
    cJSON *to = cJSON_AddObjectToObject(grant, "to"), *on = cJSON_AddObjectToObject(grant, "on");
    add_names(to, "users", 'u', g->users);
    add_names(to, "groups", 'g', g->groups);
    if (g->on == 0)
        cJSON_AddTrueToObject(on, "all");
    else if (g->on == 1)
        add_names(on, "names", 'x', g->which);
    else
        cJSON_AddStringToObject(cJSON_AddObjectToObject(on, "matchLabels"),
                                g->which & 1 ? "l1" : "l0", g->which >> 1 & 1 ? "1" : "0");
    for (unsigned i = 0; df_verb_names[i]; i++)
        if (g->verbs >> i & 1)
            cJSON_AddItemToArray(verbs, cJSON_CreateString(df_verb_names[i]));
    return grant;
}

static void make_grants(struct grant *grants, cJSON *json)
{
    for (unsigned i = 0; i < GRANTS; i++) {
        grants[i] =
            (struct grant){1 + pick(7), pick(8), pick(3), 1 + pick(15), 1 + pick(DF_VERBS_ADMIN)};
        cJSON_AddItemToObject(json, (char[]){(char)('a' + i), 0}, as_json(&grants[i]));
    }
}

/* ---- what `access` says, by the same oracle ---- */

static df_verbs verbs_of(const cJSON *row)
{
    df_verbs verbs = 0;
    const cJSON *word;
    cJSON_ArrayForEach (word, df_json_at(row, "verbs"))
        verbs |= df_verb_parse(word->valuestring);
    return verbs;
}

static bool names_person(const cJSON *to, unsigned person)
{
    const char user[] = {'u', (char)('0' + person), 0}, group[] = {'g', (char)('0' + person), 0};
    const cJSON *groups = df_json_at(to, "groups");
    return df_json_has_string(df_json_at(to, "users"), user) || df_json_has_string(groups, "g0") ||
           df_json_has_string(groups, group);
}

static bool is_about(const cJSON *on, const char *name, unsigned executor)
{
    const cJSON *label = df_json_at(on, "matchLabels");
    if (df_json_at(on, "all"))
        return true;
    if (!label)
        return df_json_has_string(df_json_at(on, "names"), name);
    unsigned bit = executor >> (df_json_at(label, "l1") ? 1 : 0) & 1;
    return df_streq(label->child->valuestring, bit ? "1" : "0");
}

/* The rows of the executor, for each person. */
static void check_rows(const struct grant *grants, const cJSON *json, const cJSON *doc, unsigned e)
{
    const struct df_access_rules rules = {.grants = json, .creator = "admin"};
    DF_JSON cJSON *rows = cJSON_CreateArray();
    const cJSON *row;
    assert_int_equal(df_access_rows(&rules, doc, NULL, rows, NULL), 0);
    for (unsigned p = 0; p < PEOPLE; p++) {
        df_verbs verbs = 0;
        cJSON_ArrayForEach (row, rows) {
            const cJSON *names = df_json_at(row, "on.names");
            assert_true(!names || (cJSON_GetArraySize(names) == 1 &&
                                   df_json_has_string(names, df_json_str(doc, "metadata.name"))));
            verbs |= names_person(df_json_at(row, "to"), p) ? verbs_of(row) : 0;
        }
        assert_int_equal(verbs, oracle(grants, GRANTS, p, e));
    }
}

/* The rows of a person and of both their groups, for an executor. */
static void check_of(const struct grant *grants, const cJSON *json, unsigned p, unsigned e)
{
    const struct df_access_rules rules = {.grants = json, .creator = "read"};
    const char user[] = {'u', (char)('0' + p), 0}, group[] = {'g', (char)('0' + p), 0};
    const char name[] = {'x', (char)('0' + e), 0}, *const asked[] = {user, "g0", group};
    df_verbs verbs = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(asked); i++) {
        DF_JSON cJSON *rows = cJSON_CreateArray();
        const cJSON *row;
        assert_int_equal(df_access_rows(&rules, NULL, asked[i], rows, NULL), 0);
        cJSON_ArrayForEach (row, rows) {
            assert_true(names_person(df_json_at(row, "to"), p) || df_json_at(row, "to.creator"));
            verbs |= is_about(df_json_at(row, "on"), name, e) ? verbs_of(row) : 0;
        }
    }
    assert_int_equal(verbs, oracle(grants, GRANTS, p, e));
}

static void check_everybody(const struct grant *grants, const cJSON *json)
{
    for (unsigned p = 0; p < PEOPLE; p++) {
        char user[] = {'u', (char)('0' + p), 0}, text[64];
        (void)snprintf(text, sizeof(text), "['g0','g%u']", p);
        DF_JSON cJSON *groups = parsed(text);
        const struct df_grantee who = {.user = user, .groups = groups};
        struct df_granted g;
        assert_int_equal(df_grants_of(json, &who, &g, NULL), 0);
        for (unsigned e = 0; e < EXECUTORS; e++) {
            char name[] = {'x', (char)('0' + e), 0}, doc[80];
            (void)snprintf(doc, sizeof(doc),
                           "{'metadata':{'name':'x%u','labels':{'l0':'%u','l1':'%u'}}}", e, e & 1,
                           e >> 1);
            DF_JSON cJSON *executor = parsed(doc);
            assert_int_equal(df_granted_on(&g, user, name, executor), oracle(grants, GRANTS, p, e));
            check_rows(grants, json, executor, e);
            check_of(grants, json, p, e);
        }
        df_granted_free(&g);
    }
}

static void random_grants_give_what_an_oracle_says(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct grant grants[GRANTS];
        DF_JSON cJSON *json = cJSON_CreateObject();
        make_grants(grants, json);
        assert_int_equal(df_grants_check(json, NULL), 0);
        check_everybody(grants, json);
    }
}

/* ---- the ceiling of a personal token ---- */

static df_verbs ceiling_oracle(const struct grant *ceiling, unsigned executor)
{
    struct grant of_all = *ceiling;
    of_all.users = 1;
    return oracle(&of_all, 1, 0, executor);
}

/* Executor e was made by person e. */
static void check_under(const struct grant *grants, const cJSON *json, const struct grant *limit,
                        const cJSON *ceiling, unsigned p)
{
    char user[] = {'u', (char)('0' + p), 0}, text[64];
    df_verbs creator = pick(DF_VERBS_ADMIN), some = DF_VERBS_ADMIN;
    (void)snprintf(text, sizeof(text), "['g0','g%u']", p);
    DF_JSON cJSON *groups = parsed(text);
    const struct df_grantee who = {.user = user, .groups = groups};
    struct df_granted g;
    assert_int_equal(df_grants_of(json, &who, &g, NULL), 0);
    df_granted_limit(&g, ceiling);
    g.creator = creator; /* known afterwards, as for each caller */
    for (unsigned e = 0; e < EXECUTORS; e++) {
        char name[] = {'x', (char)('0' + e), 0}, doc[128];
        (void)snprintf(doc, sizeof(doc),
                       "{'metadata':{'labels':{'l0':'%u','l1':'%u'}},'status':{'creator':'u%u'}}",
                       e & 1, e >> 1, e);
        DF_JSON cJSON *executor = parsed(doc);
        df_verbs own = oracle(grants, GRANTS, p, e);
        if (e == p && df_verbs_have(own, DF_VERBS_WRITE))
            own |= creator;
        df_verbs got = df_granted_on(&g, user, name, executor);
        assert_int_equal(got, own & ceiling_oracle(limit, e));
        some &= got;
    }
    assert_true(df_verbs_have(some, g.all)); /* what counts without an executor is on each one */
    assert_int_equal(g.all & ~df_grant_verbs(ceiling), 0);
    df_granted_free(&g);
}

static void under_a_ceiling_everybody_has_what_it_and_their_grants_both_give(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct grant grants[GRANTS], limit = {1, 0, pick(3), 1 + pick(15), pick(DF_VERBS_ADMIN)};
        DF_JSON cJSON *json = cJSON_CreateObject();
        int64_t us = 0;
        limit.verbs |= DF_VERB_VIEW;
        DF_JSON cJSON *ceiling = as_json(&limit);
        cJSON_DeleteItemFromObject(ceiling, "to");
        cJSON_AddStringToObject(ceiling, "name", "ci");
        make_grants(grants, json);
        assert_int_equal(df_token_check(ceiling, &us, NULL), 0);
        for (unsigned p = 0; p < PEOPLE; p++)
            check_under(grants, json, &limit, ceiling, p);
    }
}

static void a_token_lasts_as_long_as_it_says_and_thirty_days_if_it_says_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *expires;
        int64_t hours; /* 0: refused */
    } cases[] = {{"30d", 720}, {"90d", 2160}, {"2160h", 2160},     {"1d", 24}, {"36h", 36},
                 {"91d", 0},   {"0d", 0},     {"2160h0.1s", 0},    {"", 0},    {"d", 0},
                 {"-1d", 0},   {"1.5d", 0},   {"99999999999d", 0}, {"30", 0},  {"30 d", 0}};
    int64_t us = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *token = parsed("{'name':'ci','preset':'read'}");
        struct df_err err = {0};
        cJSON_AddStringToObject(token, "expires", cases[i].expires);
        assert_int_equal(df_token_check(token, &us, &err), cases[i].hours ? 0 : -1);
        if (cases[i].hours)
            assert_int_equal(us, cases[i].hours * 3600 * 1000000);
        else
            assert_non_null(strstr(err.message, "token.expires"));
    }
    DF_JSON cJSON *token = parsed("{'name':'ci','preset':'read'}");
    assert_int_equal(df_token_check(token, &us, NULL), 0);
    assert_int_equal(us, (int64_t)30 * 24 * 3600 * 1000000);
    assert_true(df_json_bool(token, "on.all", false));
}

static void the_grants_that_name_somebody_are_named(void **state)
{
    (void)state;
    DF_JSON cJSON *grants = parsed(grants_text);
    DF_JSON cJSON *groups = parsed("['all']");
    DF_JSON cJSON *found = cJSON_CreateArray();
    const struct df_grantee who = {.user = "i#bob", .groups = groups};
    assert_int_equal(df_grants_naming(grants, &who, found, NULL), 0);
    DF_FREE char *text = cJSON_PrintUnformatted(found);
    assert_string_equal(text, "[\"readers\",\"writers\"]");
    assert_int_equal(df_grants_naming(NULL, &who, found, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(found), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_grants_that_name_somebody_count),
        cmocka_unit_test(a_role_is_the_highest_whose_verbs_are_all_there),
        cmocka_unit_test(a_refusal_names_the_verbs_that_lack_and_the_role_that_has_them),
        cmocka_unit_test(the_grants_that_name_somebody_are_named),
        cmocka_unit_test(every_fault_is_named_with_its_path),
        cmocka_unit_test(a_grant_is_on_executors_by_name_or_by_all_of_its_labels),
        cmocka_unit_test(a_creator_has_more_only_while_he_may_create),
        cmocka_unit_test(random_grants_give_what_an_oracle_says),
        cmocka_unit_test(under_a_ceiling_everybody_has_what_it_and_their_grants_both_give),
        cmocka_unit_test(a_token_lasts_as_long_as_it_says_and_thirty_days_if_it_says_nothing),
    };
    return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
