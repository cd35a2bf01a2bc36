/* Steps that run in pods: claimed by a projected token, or handed over in a Secret. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/http/problem.h"
#include "spawner/identity/auth.h"
#include "spawner/steps/step_document.h"
#include "tests/unit/pod_tokens.h"

#define STEP "net-1-plan"

static const struct df_frame one_byte = {DF_STREAM_LOG, 0, "x", 1};

/* ---- a world whose steps run in pods ---- */

static int setup_with(void **state, const char *spec)
{
    return pods_setup(state, spec, "{'action':'provision','autoApprove':true}");
}

static int setup(void **state)
{
    return setup_with(state, "'variables':{'region':'eu'}");
}

static void a_pod_claims_its_step_by_its_own_token(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "uid"), s->uid);
    assert_string_equal(df_json_str(doc, "variables.region"), "eu");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.podUid", "pod-a");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.podName", "net-1-plan-abcde");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.node", "node1");
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.host", "h");
    df_json_wipe(doc);
}

static void a_pod_of_an_old_cluster_does_not_say_its_node(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    struct pod p = pod_a;
    cJSON *doc = NULL;
    p.node = NULL;
    assert_int_equal(claim_as(w, s, &p, CLAIM_A, &doc, NULL), 0);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.node", "");
    df_json_wipe(doc);
}

static void what_a_runner_says_of_its_pod_does_not_count(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    assert_int_equal(claim_as(w, s, &pod_a,
                              "{'claimId':'00000000000000000000000000000aaa','podUid':'other',"
                              "'podName':'other','node':'other'}",
                              &doc, NULL),
                     0);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.podUid", "pod-a");
    df_json_wipe(doc);
}

static void a_lost_answer_is_repeated_for_a_token_that_was_read_again(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    struct pod renewed = pod_a;
    renewed.age_s = 1;
    cJSON *first = NULL, *again = NULL;
    int64_t end = 0;
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &first, NULL), 0);
    assert_int_equal(claim_as(w, s, &renewed, CLAIM_A, &again, NULL), 0);
    assert_string_equal(df_json_str(first, "stepToken"), df_json_str(again, "stepToken"));
    struct runner r = runner_of(w, s, first);
    assert_int_equal(df_step_stream_end(&w->s, s->uid, r.step_token, DF_STREAM_LOG, &end, NULL), 0);
    df_json_wipe(first);
    df_json_wipe(again);
}

static void the_first_pod_wins_and_no_other_gets_anything(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL, *other = NULL;
    struct df_err err;
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &doc, NULL), 0);
    DF_JSON cJSON *before = get(w, DF_KIND_TASK_ACTION, STEP);
    /* Another pod; another pod with a claim id that it overheard; another runner in the same pod.
     */
    assert_fails(claim_as(w, s, &pod_b, CLAIM_B, &other, &err), err, DF_ERR_CONFLICT,
                 "AlreadyClaimed");
    assert_fails(claim_as(w, s, &pod_b, CLAIM_A, &other, &err), err, DF_ERR_CONFLICT,
                 "AlreadyClaimed");
    assert_fails(claim_as(w, s, &pod_a, CLAIM_B, &other, &err), err, DF_ERR_CONFLICT,
                 "AlreadyClaimed");
    assert_null(other);
    DF_JSON cJSON *after = get(w, DF_KIND_TASK_ACTION, STEP);
    assert_true(df_json_equal(df_json_at(before, "status.claimedBy"),
                              df_json_at(after, "status.claimedBy")));
    assert_true(df_json_equal(df_json_at(before, "status.auth"), df_json_at(after, "status.auth")));
    df_json_wipe(doc);
}

static void tokens_that_are_not_of_this_steps_pod_are_refused(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    const struct {
        struct pod pod;
        const char *reason;
    } cases[] = {
        {{"other", "p", "u", "runner", "n", NULL, 10, 3600}, "TokenNamespace"},
        {{"", "p", "u", "runner", "n", NULL, 10, 3600}, "TokenNamespace"},
        {{"infra", NULL, NULL, "runner", "n", NULL, 10, 3600}, "TokenNotOfPod"},
        {{"infra", "p", "", "runner", "n", NULL, 10, 3600}, "TokenNotOfPod"},
        {{"infra", "p", "u", "runner", "n", "dayfly/another-step", 10, 3600}, "TokenAudience"},
        {{"infra", "p", "u", "runner", "n", "dayfly", 10, 3600}, "TokenAudience"},
        {{"infra", "p", "u", "runner", "n", "https://kubernetes", 10, 3600}, "TokenAudience"},
        {{"infra", "p", "u", "runner", "n", NULL, 7200, 3600}, "TokenExpired"},
        {{"infra", "p", "u", "runner", "n", NULL, -300, 3600}, "TokenNotYetValid"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        cJSON *doc = NULL;
        struct df_err err;
        assert_fails(claim_as(w, s, &cases[i].pod, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                     cases[i].reason);
        assert_int_equal(df_problem_status(&err), 401);
        assert_null(doc);
    }
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
}

static void engine_says_of_pods(struct world *w, enum df_err_class class, const char *reason)
{
    struct df_err why = {.cls = class};
    (void)snprintf(why.reason, sizeof(why.reason), "%s", reason);
    (void)pthread_mutex_lock(&w->engine.lock);
    w->engine.pod_error = why;
    (void)pthread_mutex_unlock(&w->engine.lock);
}

/* Anybody who may create pods in the namespace gets a token with the right audience. */
static void a_pod_that_the_job_did_not_make_gets_nothing_and_its_own_pod_still_does(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    struct df_err err;
    engine_says_of_pods(w, DF_ERR_DENIED, "PodNotOfStep");
    assert_fails(claim_as(w, s, &pod_b, CLAIM_B, &doc, &err), err, DF_ERR_DENIED, "PodNotOfStep");
    assert_int_equal(df_problem_status(&err), 401);
    assert_null(doc);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
    engine_says_of_pods(w, DF_ERR_RETRY, "");
    assert_fails(claim_as(w, s, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_RETRY, "");
    assert_int_equal(df_problem_status(&err), 503);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
    engine_says_of_pods(w, DF_ERR_NONE, "");
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &doc, NULL), 0);
    df_json_wipe(doc);
}

static int set_ref(cJSON *task, void *arg, struct df_err *err)
{
    return df_json_set(df_json_object_at(task, "status"), "engineRef", json(arg), err);
}

static void where_the_engine_recorded_namespaceand_account_they_count(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    await_ref(w, STEP);
    df_memory_forget(&w->s.memory, DF_KIND_TASK_ACTION,
                     STEP); /* its writer may not have done so yet */
    char ref[] = "{'kind':'Job','namespace':'team','serviceAccountName':'tofu'}";
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, STEP, set_ref, ref, NULL, NULL), 0);
    struct pod p = pod_a;
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(claim_as(w, s, &p, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "TokenNamespace");
    p.namespace = "team";
    assert_fails(claim_as(w, s, &p, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                 "TokenServiceAccount");
    p.account = "tofu";
    assert_int_equal(claim_as(w, s, &p, CLAIM_A, &doc, NULL), 0);
    df_json_wipe(doc);
}

static void while_the_cluster_is_away_a_claim_may_be_tried_again(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    cJSON *doc = NULL;
    struct df_err err;
    cluster_away = true;
    assert_fails(claim_as(w, s, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_RETRY,
                 "TokenKeysUnavailable");
    assert_int_equal(df_problem_status(&err), 503);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
}

static void a_step_outlives_the_token_that_claimed_it(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    struct pod brief = pod_a;
    brief.life_s = -10; /* over since 20 s: within the leeway at the claim */
    cJSON *doc = NULL;
    assert_int_equal(claim_as(w, s, &brief, CLAIM_A, &doc, NULL), 0);
    struct runner r = runner_of(w, s, doc);
    int64_t end = 0;
    assert_int_equal(df_step_append(&w->s, s->uid, r.step_token, &one_byte, &end, NULL), 0);
    df_json_wipe(doc);
}

static void the_token_of_a_pod_is_masked_in_its_log(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    DF_JSON cJSON *request = json(CLAIM_A);
    DF_FREE char *token = token_of_pod(&pod_a, s->uid);
    cJSON *doc = NULL;
    assert_int_equal(df_step_claim(&w->s, s->uid, token, request, &doc, NULL), 0);
    const cJSON *value;
    bool found = false;
    cJSON_ArrayForEach (value, df_json_at(doc, "mask"))
        found |= df_streq(value->valuestring, token);
    assert_true(found);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    DF_FREE char *text = df_json_print(task);
    assert_null(strstr(text, token));
    df_json_wipe(doc);
}

static void a_step_of_the_local_engine_takes_no_token_of_a_pod(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    struct df_claims *claims = w->s.claims;
    cJSON *doc = NULL;
    struct df_err err;
    w->s.claims = NULL;
    assert_fails(claim_as(w, s, &pod_a, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "");
    w->s.claims = claims;
    DF_JSON cJSON *local = json("{'spec':{'engine':'local'}}");
    DF_JSON cJSON *job = json("{'spec':{'engine':'job'}}");
    assert_false(df_step_is_in_pod(&w->s, local)); /* an engine that is not open */
    assert_true(df_step_is_in_pod(&w->s, job));
    w->engine.kind.runs_pods = false;
    assert_false(df_step_is_in_pod(&w->s, job));
}

static void the_keys_may_lie_in_a_file(void **state)
{
    struct world *w = *state;
    struct fake_step *s = await_start(w, STEP);
    DF_FREE char *path = df_fs_join(w->dir, "jwks.json");
    DF_FREE char *url = df_strf("file://%s", path);
    DF_FREE char *keys = cluster_keys();
    struct df_claims_options o = {.jwks_url = url, .namespace = "infra"};
    struct df_err err = {0};
    cJSON *doc = NULL;
    struct df_claims *claims = NULL;
    assert_int_equal(df_claims_new(&o, &claims, &err), -1);
    assert_non_null(strstr(err.message, "claim.issuer"));
    assert_int_equal(df_fs_replace(path, keys, strlen(keys), 0600, NULL), 0);
    o.issuer = ISSUER;
    df_claims_free(w->s.claims);
    assert_int_equal(df_claims_new(&o, &w->s.claims, NULL), 0);
    assert_int_equal(claim_as(w, s, &pod_a, CLAIM_A, &doc, NULL), 0);
    df_json_wipe(doc);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

/* ---- people and machines with an account of the cluster ---- */

static int come_as(struct world *w, const struct pod *p, struct df_caller *ret, struct df_err *err)
{
    DF_JSON cJSON *accounts = json("{'infra/boss':'admin','infra/ci':'write','nobody':'admin'}");
    DF_FREE char *token = token_of_pod(p, "");
    return df_auth_account(accounts, NULL, w->s.claims, token, ret, err);
}

static void an_account_that_is_listed_has_its_role(void **state)
{
    struct world *w = *state;
    struct df_caller caller = {0};
    const struct pod boss = {"infra", NULL, NULL, "boss", NULL, "dayfly", 10, 3600};
    assert_int_equal(come_as(w, &boss, &caller, NULL), 0);
    assert_int_equal(caller.role, DF_ROLE_ADMIN);
    assert_string_equal(caller.name, "infra/boss");
    assert_int_equal(caller.known_by, DF_KNOWN_BY_ACCOUNT);
    struct pod in_pod = pod_a;
    in_pod.account = "ci";
    in_pod.audience = "dayfly";
    assert_int_equal(come_as(w, &in_pod, &caller, NULL), 0);
    assert_int_equal(caller.role, DF_ROLE_WRITE);
}

static void an_account_has_the_verbs_of_grants_that_name_it_and_of_its_role(void **state)
{
    static const struct {
        const char *account;
        df_verbs all;
        size_t some;
        enum df_role role;
    } cases[] = {
        {"ci", DF_VERBS_WRITE | DF_VERB_EDIT, 1, DF_ROLE_WRITE},
        {"bot", DF_VERB_EDIT, 1, DF_ROLE_NONE},
        {"net", 0, 1, DF_ROLE_NONE},
        {"other", 0, 0, DF_ROLE_NONE},
    };
    struct world *w = *state;
    DF_JSON cJSON *accounts = json("{'infra/ci':'write'}");
    DF_JSON cJSON *grants =
        json("{'a':{'to':{'serviceAccounts':['infra/bot','infra/ci']},'on':{'all':true},'verbs':"
             "['edit']},'b':{'to':{'serviceAccounts':['infra/bot','infra/ci','infra/net'],'users':["
             "'infra/other']},'on':{'names':['net']},'preset':'read'}}");
    assert_int_equal(df_grants_check(grants, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const struct pod pod = {"infra", NULL, NULL, cases[i].account, NULL, "dayfly", 10, 3600};
        DF_FREE char *token = token_of_pod(&pod, "");
        struct df_caller caller = {0};
        struct df_err err = {0};
        bool is_somebody = cases[i].all || cases[i].some;
        assert_int_equal(df_auth_account(accounts, grants, w->s.claims, token, &caller, &err),
                         is_somebody ? 0 : -1);
        assert_int_equal(caller.granted.all, cases[i].all);
        assert_int_equal(caller.granted.some_count, cases[i].some);
        assert_int_equal(caller.role, cases[i].role);
        assert_true(is_somebody || strstr(err.message, "infra/other is neither in"));
        df_caller_free(&caller);
    }
}

static void any_other_account_or_audience_is_refused(void **state)
{
#define FIFTY "a-name-that-is-allowed-and-longer-than-what-trails"
    static const char long_name[] = FIFTY FIFTY FIFTY FIFTY FIFTY; /* than DF_LIMIT_CALLER */
    static const struct {
        struct pod pod;
        const char *reason;
    } cases[] = {
        {{"infra", NULL, NULL, "other", NULL, "dayfly", 10, 3600}, "Unauthorized"},
        {{"other", NULL, NULL, "boss", NULL, "dayfly", 10, 3600}, "Unauthorized"},
        {{"", NULL, NULL, "nobody", NULL, "dayfly", 10, 3600}, "TokenNotOfAccount"},
        {{"infra", NULL, NULL, "", NULL, "dayfly", 10, 3600}, "TokenNotOfAccount"},
        {{"infra", NULL, NULL, long_name, NULL, "dayfly", 10, 3600}, "TokenNotOfAccount"},
        {{"infra", NULL, NULL, "boss", NULL, "dayfly/" STEP, 10, 3600}, "TokenAudience"},
        {{"infra", NULL, NULL, "boss", NULL, "https://cluster.example", 10, 3600}, "TokenAudience"},
        {{"infra", NULL, NULL, "boss", NULL, "dayfly", 4000, 3600}, "TokenExpired"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_caller caller = {.role = DF_ROLE_NONE};
        struct df_err err;
        assert_fails(come_as(w, &cases[i].pod, &caller, &err), err, DF_ERR_DENIED, cases[i].reason);
        assert_int_equal(df_problem_status(&err), 401);
        assert_int_equal(caller.role, DF_ROLE_NONE);
    }
}

int main(void)
{
    (void)play_plan; /* of the header, for others */
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_pod_claims_its_step_by_its_own_token),
        TEST(a_pod_of_an_old_cluster_does_not_say_its_node),
        TEST(what_a_runner_says_of_its_pod_does_not_count),
        TEST(a_lost_answer_is_repeated_for_a_token_that_was_read_again),
        TEST(the_first_pod_wins_and_no_other_gets_anything),
        TEST(tokens_that_are_not_of_this_steps_pod_are_refused),
        TEST(a_pod_that_the_job_did_not_make_gets_nothing_and_its_own_pod_still_does),
        TEST(where_the_engine_recorded_namespaceand_account_they_count),
        TEST(while_the_cluster_is_away_a_claim_may_be_tried_again),
        TEST(a_step_outlives_the_token_that_claimed_it),
        TEST(the_token_of_a_pod_is_masked_in_its_log),
        TEST(a_step_of_the_local_engine_takes_no_token_of_a_pod),
        TEST(the_keys_may_lie_in_a_file),
        TEST(an_account_that_is_listed_has_its_role),
        TEST(an_account_has_the_verbs_of_grants_that_name_it_and_of_its_role),
        TEST(any_other_account_or_audience_is_refused),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
