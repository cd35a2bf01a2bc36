/* Who wrote a custom resource: what the webhook writes into its annotations, and what the service
 * reads there. The reviews have the form of those that an API server 1.34 sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "common/crypto/crypto.h"
#include "spawner/model/review.h"
#include "spawner/model/stamp.h"
#include "tests/unit/json_words.h"

/* ---- reading ---- */

static cJSON *stamped(const char *value)
{
    DF_FREE char *text =
        df_strf("{'metadata':{'annotations':{'dayfly.dev/requested-by':'%s'}}}", value);
    return json(text);
}

static const struct {
    const char *value, *name;
    enum df_role role;
} readable[] = {
    {"write eve", "eve", DF_ROLE_WRITE},
    {"admin bob@example.org", "bob@example.org", DF_ROLE_ADMIN},
    {"write https://idp.example.org#a b", "https://idp.example.org#a b", DF_ROLE_WRITE},
    {"admin system:serviceaccount:ci:deployer", "ci/deployer", DF_ROLE_ADMIN},
    {"write system:serviceaccount:ci", "system:serviceaccount:ci", DF_ROLE_WRITE},
};

static void a_stamp_is_a_role_and_a_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(readable); i++) {
        DF_JSON cJSON *doc = stamped(readable[i].value);
        struct df_stamp s = df_stamp_read(doc, DF_STAMP_REQUESTED, true);
        assert_true(s.is_named);
        assert_string_equal(s.name, readable[i].name);
        assert_int_equal(s.role, readable[i].role);
    }
}

static void assert_nobody(const cJSON *doc, bool is_believed)
{
    struct df_stamp s = df_stamp_read(doc, DF_STAMP_REQUESTED, is_believed);
    assert_false(s.is_named);
    assert_string_equal(s.name, "kubernetes");
    assert_int_equal(s.role, DF_ROLE_ADMIN);
    assert_false(df_stamp_is_name(s.name));
}

static void what_is_no_stamp_names_nobody(void **state)
{
    (void)state;
    static const char *const values[] = {"",           "eve",        "write",
                                         "write ",     "writeeve",   "read eve",
                                         "Admin eve",  " admin eve", "write kubernetes",
                                         "write a\\n", "admin a\\tb"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(values); i++) {
        DF_JSON cJSON *doc = stamped(values[i]);
        assert_nobody(doc, true);
    }
    DF_JSON cJSON *none = json("{'metadata':{}}"), *other = json("{'metadata':{'annotations':{"
                                                                 "'dayfly.dev/requested-by':1}}}");
    assert_nobody(none, true);
    assert_nobody(other, true);
    char longest[DF_LIMIT_STAMP + 2];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    DF_FREE char *text = df_strf("write %s", longest);
    DF_JSON cJSON *doc = stamped(text);
    assert_nobody(doc, true);
}

static void a_stamp_is_not_believed_where_anybody_could_write_it(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = stamped("admin ceo");
    assert_nobody(doc, false);
}

/* ---- writing ---- */

#define USER "'userInfo':{'username':'eve','groups':['system:authenticated']}"
#define REVIEW(kind, user, object, old)                                                            \
    "{'kind':'AdmissionReview','apiVersion':'admission.k8s.io/v1','request':{"                     \
    "'uid':'705ab4f5-6393-11e8-b7cc-42010a800002','resource':{'group':'dayfly.dev',"               \
    "'version':'v1alpha1','resource':'runs'},'namespace':'dayfly'," user ","                       \
    "'object':{'kind':'" kind "'," object "},'oldObject':" old ",'dryRun':false}}"
#define BY "'dayfly.dev/requested-by'"
#define DECIDED "'dayfly.dev/decided-by'"
#define CANCELED "'dayfly.dev/canceled-by'"
#define OLD_RUN "{'kind':'Run','metadata':{'annotations':{" BY ":'write eve'}},'spec':{}}"

static const struct {
    const char *what, *review;
    const char *annotations; /* NULL: no patch */
} reviews[] = {
    {"a creation names the requester",
     REVIEW("Run", USER, "'metadata':{'name':'a'},'spec':{}", "null"), "{" BY ":'write eve'}"},
    {"other annotations stay",
     REVIEW("Run", USER, "'metadata':{'annotations':{'a':'b'}},'spec':{}", "null"),
     "{'a':'b'," BY ":'write eve'}"},
    {"a forged name is replaced",
     REVIEW("Run", USER,
            "'metadata':{'annotations':{" BY ":'admin ceo'," DECIDED ":'admin ceo'," CANCELED
            ":'admin ceo'}},'spec':{}",
            "null"),
     "{" BY ":'write eve'}"},
    {"the right name needs no patch",
     REVIEW("Run", USER, "'metadata':{'annotations':{" BY ":'write eve'}},'spec':{}", "null"),
     NULL},
    {"a decision names who decides, and the requester stays",
     REVIEW("Run", "'userInfo':{'username':'bob'}",
            "'metadata':{'annotations':{" BY
            ":'write eve'}},'spec':{'decision':{'verdict':'approved'}}",
            OLD_RUN),
     "{" BY ":'write eve'," DECIDED ":'write bob'}"},
    {"a change of the requester is undone",
     REVIEW("Run", "'userInfo':{'username':'bob'}",
            "'metadata':{'annotations':{" BY ":'write bob'}},'spec':{}", OLD_RUN),
     "{" BY ":'write eve'}"},
    {"so is a removal",
     REVIEW("Run", "'userInfo':{'username':'bob'}", "'metadata':{},'spec':{}", OLD_RUN),
     "{" BY ":'write eve'}"},
    {"and a name that was not there before",
     REVIEW("Run", USER, "'metadata':{'annotations':{" DECIDED ":'write bob'}},'spec':{}",
            "{'kind':'Run','metadata':{},'spec':{}}"),
     "{}"},
    {"a decision that was there before keeps its name",
     REVIEW("Run", USER,
            "'metadata':{'annotations':{" DECIDED
            ":'write eve'}},'spec':{'decision':{'verdict':'approved'}}",
            "{'kind':'Run','metadata':{'annotations':{" DECIDED
            ":'write bob'}},'spec':{'decision':{'verdict':'approved'}}}"),
     "{" DECIDED ":'write bob'}"},
    {"a cancel names who cancels",
     REVIEW("TaskAction", USER, "'metadata':{},'spec':{'cancel':{}}",
            "{'kind':'TaskAction','metadata':{},'spec':{}}"),
     "{" CANCELED ":'write eve'}"},
    {"an edit of an executor names the editor",
     REVIEW("Executor", USER,
            "'metadata':{'annotations':{" BY ":'admin bob'}},'spec':{'description':'new'}",
            "{'kind':'Executor','metadata':{'annotations':{" BY
            ":'admin bob'}},'spec':{'description':'old'}}"),
     "{" BY ":'write eve'}"},
    {"a run that is edited before it is accepted is the editor's",
     REVIEW("Run", "'userInfo':{'username':'bob'}",
            "'metadata':{'annotations':{" BY ":'admin ann'}},'spec':{'variables':{'a':1}}",
            "{'kind':'Run','metadata':{'annotations':{" BY ":'admin ann'}},'spec':{}}"),
     "{" BY ":'write bob'}"},
    {"a label of an executor does not",
     REVIEW("Executor", USER,
            "'metadata':{'labels':{'a':'b'},'annotations':{" BY ":'admin bob'}},'spec':{'a':1}",
            "{'kind':'Executor','metadata':{'annotations':{" BY ":'admin bob'}},'spec':{'a':1}}"),
     NULL},
};

static cJSON *answer_to(const char *text, enum df_role role)
{
    DF_JSON cJSON *review = json(text);
    struct df_err err = {0};
    cJSON *answer = NULL;
    if (df_review_answer(review, role, &answer, &err) < 0)
        fail_msg("%s", err.message);
    return answer;
}

/* The annotations that the patch of the answer sets; NULL: there is no patch. */
static cJSON *patched(const cJSON *answer)
{
    const char *base64 = df_json_str(answer, "response.patch");
    DF_BUF struct df_buf text = DF_BUF_INIT(65536);
    if (!base64)
        return NULL;
    assert_string_equal(df_json_str(answer, "response.patchType"), "JSONPatch");
    assert_int_equal(df_base64_decode(base64, strlen(base64), false, &text, NULL), 0);
    DF_JSON cJSON *patch = cJSON_Parse(df_buf_str(&text));
    assert_int_equal(cJSON_GetArraySize(patch), 1);
    const cJSON *operation = cJSON_GetArrayItem(patch, 0);
    assert_string_equal(df_json_str(operation, "op"), "add");
    assert_string_equal(df_json_str(operation, "path"), "/metadata/annotations");
    return cJSON_Duplicate(df_json_at(operation, "value"), true);
}

static void a_review_is_answered_with_the_names_as_they_must_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(reviews); i++) {
        DF_JSON cJSON *answer = answer_to(reviews[i].review, DF_ROLE_WRITE);
        DF_JSON cJSON *found = patched(answer);
        DF_JSON cJSON *expected = reviews[i].annotations ? json(reviews[i].annotations) : NULL;
        DF_FREE char *text = df_json_print(answer);
        assert_true(df_json_bool(answer, "response.allowed", false));
        assert_string_equal(df_json_str(answer, "response.uid"),
                            "705ab4f5-6393-11e8-b7cc-42010a800002");
        assert_string_equal(df_json_str(answer, "kind"), "AdmissionReview");
        if (expected ? !found || !df_json_equal(found, expected) : found != NULL)
            fail_msg("%s: %s", reviews[i].what, text);
    }
}

static void the_role_is_the_one_of_the_path(void **state)
{
    (void)state;
    DF_JSON cJSON *answer = answer_to(reviews[0].review, DF_ROLE_ADMIN);
    DF_JSON cJSON *found = patched(answer);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(found, DF_STAMP_REQUESTED)),
        "admin eve");
}

static void a_user_whose_name_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    static const char *const users[] = {"'userInfo':{'username':'a\\nb'}", "'userInfo':{}",
                                        "'userInfo':{'username':'kubernetes'}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(users); i++) {
        DF_FREE char *text =
            df_strf("{'apiVersion':'admission.k8s.io/v1','request':{'uid':'1','resource':{'group':"
                    "'dayfly.dev'},%s,'object':{'kind':'Run','metadata':{},'spec':{}}}}",
                    users[i]);
        DF_JSON cJSON *answer = answer_to(text, DF_ROLE_WRITE);
        assert_false(df_json_bool(answer, "response.allowed", true));
        assert_non_null(df_json_str(answer, "response.status.message"));
        assert_null(df_json_str(answer, "response.patch"));
    }
}

#define DELETION(user, dry)                                                                        \
    "{'apiVersion':'admission.k8s.io/v1','request':{'uid':'1','operation':'DELETE','resource':{"   \
    "'group':'dayfly.dev'}," user ",'object':null,'oldObject':{'kind':'Run','metadata':{'uid':"    \
    "'7c1'}},'dryRun':" dry "}}"

static void a_deletion_is_allowed_and_names_who_deletes_what(void **state)
{
    (void)state;
    static const struct {
        const char *review, *name; /* NULL: nobody */
    } cases[] = {{DELETION(USER, "false"), "eve"},
                 {DELETION("'userInfo':{'username':'system:serviceaccount:ci:deployer'}", "false"),
                  "ci/deployer"},
                 {DELETION(USER, "true"), NULL},
                 {DELETION("'userInfo':{'username':'a\\nb'}", "false"), NULL}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *review = json(cases[i].review);
        DF_JSON cJSON *answer = answer_to(cases[i].review, DF_ROLE_ADMIN);
        struct df_stamp by = df_stamp_nobody();
        const char *uid = NULL;
        assert_true(df_json_bool(answer, "response.allowed", false));
        assert_null(df_json_str(answer, "response.patch"));
        assert_int_equal(df_review_deletion(review, DF_ROLE_ADMIN, &uid, &by),
                         cases[i].name != NULL);
        assert_string_equal(by.name, cases[i].name ? cases[i].name : "kubernetes");
        assert_true(!cases[i].name || (df_streq(uid, "7c1") && by.role == DF_ROLE_ADMIN));
    }
    DF_JSON cJSON *creation = json(reviews[0].review);
    struct df_stamp by;
    const char *uid = NULL;
    assert_false(df_review_deletion(creation, DF_ROLE_WRITE, &uid, &by));
}

static void what_is_no_review_of_ours_is_an_error(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{}", "{'apiVersion':'admission.k8s.io/v1beta1','request':{'uid':'1'}}",
        "{'apiVersion':'admission.k8s.io/v1','request':{'uid':'1','resource':{'group':'apps'},"
        "'object':{}}}",
        "{'apiVersion':'admission.k8s.io/v1','request':{'uid':'1','resource':{'group':"
        "'dayfly.dev'},'object':null}}",
        "{'apiVersion':'admission.k8s.io/v1','request':{'uid':'1','resource':{'group':"
        "'dayfly.dev'},'operation':'DELETE','object':{},'oldObject':null}}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        DF_JSON cJSON *review = json(bodies[i]), *answer = NULL;
        struct df_err err = {0};
        assert_int_equal(df_review_answer(review, DF_ROLE_WRITE, &answer, &err), -1);
        assert_string_equal(err.reason, "InvalidDocument");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_is_a_role_and_a_name),
        cmocka_unit_test(what_is_no_stamp_names_nobody),
        cmocka_unit_test(a_stamp_is_not_believed_where_anybody_could_write_it),
        cmocka_unit_test(a_review_is_answered_with_the_names_as_they_must_be),
        cmocka_unit_test(the_role_is_the_one_of_the_path),
        cmocka_unit_test(a_user_whose_name_cannot_be_kept_is_refused),
        cmocka_unit_test(a_deletion_is_allowed_and_names_who_deletes_what),
        cmocka_unit_test(what_is_no_review_of_ours_is_an_error),
    };
    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
