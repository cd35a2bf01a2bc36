/* The claim of a standby runner: who may ask, what it gets, and the route. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "common/base/log.h"
#include "common/http/http.h"
#include "spawner/api/routes.h"
#include "spawner/http/api.h"
#include "spawner/http/problem.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/step_document.h"
#include "tests/unit/pod_tokens.h"

#define STEP "net-1-plan"
#define ID "standby-1"
#define OTHER "standby-2"
#define JOB                                                                                        \
    "{'kind':'Job','name':'" ID "','namespace':'infra','uid':'j-1','serviceAccountName':'runner'," \
    "'hostUid':'" ID "'}"

static int setup(void **state)
{
    if (pods_make(state, "", "{'action':'provision','autoApprove':true}") < 0)
        return -1;
    struct world *w = *state;
    return df_standby_new(&w->s.standby, NULL) < 0 ? -1 : pods_start(state);
}

static int setup_without_standby(void **state)
{
    return pods_setup(state, "", "{'action':'provision','autoApprove':true}");
}

static int teardown(void **state)
{
    struct df_standby *runners = ((struct world *)*state)->s.standby;
    int result = world_teardown(state);
    df_standby_free(runners);
    return result;
}

/* ---- what the control loop does ---- */

static void add_runner(struct world *w)
{
    static const struct df_standby_form form = {"d", 100, ""};
    DF_JSON cJSON *job = json(JOB);
    assert_int_equal(df_standby_add(w->s.standby, job, &form, 0, NULL), 0);
    df_standby_open(w->s.standby);
}

static int set_ref(cJSON *task, void *arg, struct df_err *err)
{
    cJSON *ref = json(JOB);
    if (df_json_set_str(ref, "hostUid", arg, err) < 0)
        return -1;
    return df_json_set(df_json_object_at(task, "status"), "engineRef", ref, err);
}

static int drop_ref(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    (void)err;
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(task, "status"), "engineRef");
    return 0;
}

/* A step that was offered to the runner durably. The runner does not know it yet. */
static struct fake_step *make_offer(struct world *w)
{
    static char host[] = ID;
    struct fake_step *s = await_start(w, STEP);
    await_ref(w, STEP);
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, ID)->seen = s->seen; /* the pod lives */
    (void)pthread_mutex_unlock(&w->engine.lock);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, STEP, set_ref, host, NULL, NULL), 0);
    return s;
}

static struct fake_step *offer(struct world *w)
{
    struct fake_step *s = make_offer(w);
    df_standby_offer(w->s.standby, ID, s->uid);
    return s;
}

/* ---- a runner ---- */

static void await_waiting(const struct world *w, size_t count)
{
    static struct df_standby_view all[DF_LIMIT_STANDBY];
    size_t waiting;
    do {
        waiting = 0;
        (void)sched_yield();
        for (size_t i = df_standby_list(w->s.standby, all); i > 0; i--)
            waiting += all[i - 1].waits;
    } while (waiting != count);
}

static bool is_gone(void *arg)
{
    (void)arg;
    return false;
}

static int ask_as(struct world *w, const struct pod *p, const char *id, const char *claim,
                  cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = json(claim);
    DF_FREE char *token = token_of_pod(p, id);
    const struct df_standby_request r = {.id = id, .token = token, .body = body, .gone = is_gone};
    DF_JSON cJSON *preparation = NULL;
    int result = df_runner_claim(&w->s, &r, ret, &preparation, err);
    assert_null(preparation);
    return result;
}

static void assert_gets_step(struct world *w, const struct fake_step *s)
{
    cJSON *doc = NULL;
    struct df_err err = {0};
    if (ask_as(w, &pod_a, ID, CLAIM_A, &doc, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_json_str(doc, "uid"), s->uid);
    df_json_wipe(doc);
}

struct asker {
    struct world *w;
    pthread_t thread;
    cJSON *doc;
    int result;
    struct df_err err;
};

static void *ask_now(void *arg)
{
    struct asker *a = arg;
    a->result = ask_as(a->w, &pod_a, ID, CLAIM_A, &a->doc, &a->err);
    return NULL;
}

static void a_runner_that_waits_gets_the_step_that_is_offered(void **state)
{
    struct asker a = {.w = *state};
    add_runner(a.w);
    assert_int_equal(pthread_create(&a.thread, NULL, ask_now, &a), 0);
    await_waiting(a.w, 1);
    const struct fake_step *s = offer(a.w);
    (void)pthread_join(a.thread, NULL);
    assert_int_equal(a.result, 0);
    assert_string_equal(df_json_str(a.doc, "uid"), s->uid);
    df_json_wipe(a.doc);
    assert_value(a.w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.podUid", "pod-a");
    assert_value(a.w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy.node", "node1");
}

static void a_runner_whose_answer_was_lost_gets_the_step_again(void **state)
{
    struct world *w = *state;
    add_runner(w);
    const struct fake_step *s = offer(w);
    assert_gets_step(w, s);
    assert_gets_step(w, s);
}

static void no_other_runner_gets_the_step(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    assert_gets_step(w, offer(w));
    assert_fails(ask_as(w, &pod_a, ID, CLAIM_B, &doc, &err), err, DF_ERR_CONFLICT,
                 "AlreadyClaimed");
    assert_fails(ask_as(w, &pod_b, ID, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT,
                 "AlreadyClaimed");
    assert_null(doc);
}

static void an_offer_that_was_taken_back_is_not_claimed(void **state)
{
    static char other[] = OTHER;
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    (void)offer(w);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, STEP, set_ref, other, NULL, NULL), 0);
    assert_fails(ask_as(w, &pod_a, ID, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "TokenAudience");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, STEP, drop_ref, NULL, NULL, NULL), 0);
    assert_fails(ask_as(w, &pod_a, ID, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "TokenAudience");
    assert_null(doc);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.claimedBy", "");
}

static void a_runner_that_is_over_or_unknown_is_told_so(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    df_standby_remove(w->s.standby, ID);
    assert_fails(ask_as(w, &pod_a, ID, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_int_equal(df_problem_status(&err), 410);
    assert_null(doc);
}

/* ---- who may ask ---- */

/* What the gate and the claim say of this pod's token, without the id. */
static void hear_refusal(struct world *w, const struct pod *p, const char *id, const char *reason,
                         struct df_err *ret)
{
    DF_FREE char *token = token_of_pod(p, id);
    cJSON *doc = NULL;
    assert_fails(ask_as(w, p, id, CLAIM_A, &doc, ret), *ret, DF_ERR_DENIED, reason);
    assert_null(doc);
    assert_fails(df_runner_check(&w->s, id, token, ret), *ret, DF_ERR_DENIED, reason);
    char *found = strstr(ret->message, id);
    if (found)
        memset(found, '?', strlen(id));
}

static void who_has_no_token_of_the_id_does_not_hear_whether_it_exists(void **state)
{
    static const struct {
        struct pod pod;
        const char *reason;
    } cases[] = {
        {{"infra", "p", "u", "runner", "n", "dayfly/" OTHER "2", 10, 3600}, "TokenAudience"},
        {{"infra", "p", "u", "runner", "n", "dayfly", 10, 3600}, "TokenAudience"},
        {{"infra", "p", "u", "runner", "n", NULL, 7200, 3600}, "TokenExpired"},
    };
    struct world *w = *state;
    add_runner(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err one, other;
        hear_refusal(w, &cases[i].pod, ID, cases[i].reason, &one);
        hear_refusal(w, &cases[i].pod, OTHER, cases[i].reason, &other);
        assert_string_equal(one.message, other.message);
    }
}

static void a_token_of_another_place_is_refused(void **state)
{
    static const struct {
        struct pod pod;
        const char *reason;
    } cases[] = {
        {{"other", "p", "u", "runner", "n", NULL, 10, 3600}, "TokenNamespace"},
        {{"infra", "p", "u", "other", "n", NULL, 10, 3600}, "TokenServiceAccount"},
        {{"infra", NULL, NULL, "runner", "n", NULL, 10, 3600}, "TokenNotOfPod"},
    };
    struct world *w = *state;
    add_runner(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *token = token_of_pod(&cases[i].pod, ID);
        struct df_err err;
        cJSON *doc = NULL;
        assert_fails(df_runner_check(&w->s, ID, token, &err), err, DF_ERR_DENIED, cases[i].reason);
        assert_fails(ask_as(w, &cases[i].pod, ID, CLAIM_A, &doc, &err), err, DF_ERR_DENIED,
                     cases[i].reason);
    }
}

static void a_pod_that_the_job_did_not_make_does_not_wait(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    (void)pthread_mutex_lock(&w->engine.lock);
    w->engine.pod_error = (struct df_err){.cls = DF_ERR_DENIED, .reason = "PodNotOfStep"};
    (void)pthread_mutex_unlock(&w->engine.lock);
    assert_fails(ask_as(w, &pod_b, ID, CLAIM_B, &doc, &err), err, DF_ERR_DENIED, "PodNotOfStep");
}

static void a_claim_id_that_is_none_does_not_wait(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    assert_fails(ask_as(w, &pod_a, ID, "{'claimId':'x'}", &doc, &err), err, DF_ERR_USER,
                 "InvalidDocument");
    assert_fails(ask_as(w, &pod_a, ID, "{}", &doc, &err), err, DF_ERR_USER, "InvalidDocument");
}

/* The pod of a step has a good token for the uid of that step. */
static void no_step_comes_for_the_runner_of_a_step_whose_pod_does_not_stay(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    add_runner(w);
    assert_fails(ask_as(w, &pod_a, await_start(w, STEP)->uid, CLAIM_A, &doc, &err), err,
                 DF_ERR_CONFLICT, "StepOver");
}

static void without_an_engine_of_pods_there_are_no_standby_runners(void **state)
{
    struct world *w = *state;
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(ask_as(w, &pod_a, ID, CLAIM_A, &doc, &err), err, DF_ERR_DENIED, "");
}

/* ---- what a runner may get ready ---- */

#define PLAN                                                                                       \
    "{'spec':{'source':{'url':'https://git.example/net','branch':'main'%s},"                       \
    "'runtime':{'name':'opentofu','version':'1.12.6'},'variables':{'password':'p-1'},"             \
    "'environment':[{'name':'TOKEN','value':'t-1'}],'secrets':[{'name':'aws'}]},"                  \
    "'status':{'source':{'commit':'c1','treeDigest':'d1'},'auth':{'step':'h-1'},"                  \
    "'tool':{'name':'opentofu','version':'1.12.6'}}}"

static cJSON *preparation_of(const struct world *w, const char *source_member)
{
    DF_FREE char *text = df_strf(PLAN, source_member);
    DF_JSON cJSON *plan = json(text);
    cJSON *doc = NULL;
    assert_int_equal(df_step_preparation(&w->config, plan, &doc, NULL), 0);
    cJSON_DeleteItemFromObjectCaseSensitive(doc, "tools"); /* of the configuration */
    return doc;
}

static void assert_is(const cJSON *doc, const char *text)
{
    DF_JSON cJSON *expected = json(text);
    DF_FREE char *printed = df_json_print(doc);
    if (!cJSON_Compare(doc, expected, true))
        fail_msg("%s", printed);
}

#define FOUND                                                                                      \
    "'runtime':{'name':'opentofu','version':'1.12.6'},'expected':{'commit':'c1','treeDigest':'d1'" \
    ","                                                                                            \
    "'toolName':'opentofu','toolVersion':'1.12.6'}}"

static void a_runner_hears_where_source_and_tool_are_and_nothing_else(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *doc = preparation_of(w, "");
    assert_is(doc, "{'source':{'url':'https://git.example/net','branch':'main'}," FOUND);
}

static void a_runner_hears_nothing_of_a_source_with_credentials(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *doc = preparation_of(w, ",'secretRef':{'name':'git'}");
    assert_is(doc, "{" FOUND);
}

static void a_runner_of_a_class_hears_where_tools_are(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_step_preparation(&w->config, NULL, &doc, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(doc), 1);
    assert_non_null(df_json_at(doc, "tools.index"));
}

/* ---- the route ---- */

static struct df_api *api;

/* The API starts before the control loop reads its address. */
static int setup_served(void **state)
{
    static char listen[] = "127.0.0.1:0";
    if (pods_make(state, "", "{'action':'provision','autoApprove':true}") < 0)
        return -1;
    struct world *w = *state;
    w->s.server_url = NULL;
    w->s.endpoint_file = df_fs_join(w->dir, "endpoint");
    w->config.listen = listen;
    if (df_standby_new(&w->s.standby, NULL) < 0 || df_api_start(&w->s, &df_routes, &api, NULL) < 0)
        return -1;
    return pods_start(state);
}

static int teardown_served(void **state)
{
    struct world *w = *state;
    df_control_stop(w->s.control, false);
    df_api_stop(DF_TAKE(api));
    free(w->s.server_url);
    free(w->s.endpoint_file);
    return teardown(state);
}

struct client {
    const struct world *w;
    pthread_t thread;
    char id[32];
    const char *token_of; /* NULL: id */
    volatile bool leaves;
    const char *claim; /* NULL: CLAIM_A */
    int sent, status;
    char step[64];
};

static void *request(void *arg)
{
    struct client *c = arg;
    DF_FREE char *url = df_strf("%s/v1/runners/%s/claim", c->w->s.server_url, c->id);
    DF_FREE char *token = token_of_pod(&pod_a, c->token_of ? c->token_of : c->id);
    DF_JSON cJSON *body = json(c->claim ? c->claim : CLAIM_A), *doc = NULL;
    DF_FREE char *text = df_json_print(body);
    const struct df_http_options o = {.bearer = token, .proxy = ""};
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http *http = NULL;
    struct df_http_request req = DF_HTTP_REQUEST("POST", url);
    req.body = text;
    req.body_len = strlen(text);
    req.stop = &c->leaves;
    c->sent = df_http_new(&o, &http, NULL) < 0 ? -1 : df_http_send(http, &req, &answer, NULL);
    df_http_free(http);
    c->status = answer.status;
    if (answer.status == 200 &&
        df_json_parse(df_buf_str(&answer.body), answer.body.len, &doc, NULL) == 0)
        (void)snprintf(c->step, sizeof(c->step), "%s", df_json_str(doc, "uid"));
    return NULL;
}

static void begin(struct client *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, request, c), 0);
}

static int status_of(const struct world *w, const char *id, const char *token_of)
{
    struct client c = {.w = w, .token_of = token_of};
    (void)snprintf(c.id, sizeof(c.id), "%s", id);
    (void)request(&c);
    return c.status;
}

static void the_route_waits_and_gives_the_step(void **state)
{
    struct world *w = *state;
    struct client c = {.w = w, .id = ID};
    add_runner(w);
    begin(&c);
    await_waiting(w, 1);
    const struct fake_step *s = offer(w);
    (void)pthread_join(c.thread, NULL);
    assert_int_equal(c.status, 200);
    assert_string_equal(c.step, s->uid);
}

static void the_route_says_what_to_get_ready(void **state)
{
    struct world *w = *state;
    struct client c = {.w = w,
                       .id = ID,
                       .claim = "{'claimId':'0000000000000000000000000000000a','prepares':true}"};
    DF_JSON cJSON *doc = json("{'tools':{}}");
    add_runner(w);
    assert_int_equal(df_standby_prepare(w->s.standby, ID, doc, NULL), 0);
    (void)request(&c);
    assert_int_equal(c.status, 202);
}

static void the_route_refuses_as_a_claim_does(void **state)
{
    struct world *w = *state;
    assert_int_equal(status_of(w, ID, ID), 410);
    assert_int_equal(status_of(w, "other", "other"), 410);
    assert_int_equal(status_of(w, ID, OTHER), 401);
    assert_int_equal(status_of(w, "other", ID), 401);
}

static void a_server_that_stops_lets_its_runners_ask_elsewhere(void **state)
{
    struct world *w = *state;
    struct client c = {.w = w, .id = ID};
    add_runner(w);
    begin(&c);
    await_waiting(w, 1);
    df_control_stop(w->s.control, false); /* it reads what the API sets */
    df_api_stop(DF_TAKE(api));
    (void)pthread_join(c.thread, NULL);
    assert_int_equal(c.status, 503);
}

static void a_runner_that_left_waits_no_more(void **state)
{
    struct world *w = *state;
    struct client c = {.w = w, .id = ID};
    add_runner(w);
    begin(&c);
    await_waiting(w, 1);
    __atomic_store_n(&c.leaves, true, __ATOMIC_RELAXED);
    (void)pthread_join(c.thread, NULL);
    assert_int_equal(c.sent, -1);
    await_waiting(w, 0);
}

static void a_hundred_runners_wait_at_once(void **state)
{
    enum { MANY = 100 };
    static const struct df_standby_form form = {"d", 100, ""};
    static struct client c[MANY];
    struct world *w = *state;
    df_standby_open(w->s.standby);
    for (int i = 0; i < MANY; i++) {
        c[i] = (struct client){.w = w};
        (void)snprintf(c[i].id, sizeof(c[i].id), "standby-%d", i);
        DF_JSON cJSON *job = json(JOB);
        assert_int_equal(df_json_set_str(job, "hostUid", c[i].id, NULL), 0);
        assert_int_equal(df_standby_add(w->s.standby, job, &form, 0, NULL), 0);
        begin(&c[i]);
    }
    await_waiting(w, MANY);
    for (int i = 0; i < MANY; i++)
        df_standby_remove(w->s.standby, c[i].id);
    for (int i = 0; i < MANY; i++) {
        (void)pthread_join(c[i].thread, NULL);
        assert_int_equal(c[i].status, 410);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define SERVED(f) cmocka_unit_test_setup_teardown(f, setup_served, teardown_served)

int main(void)
{
    (void)play_plan; /* of the header, for others */
    (void)claim_as;
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_runner_that_waits_gets_the_step_that_is_offered),
        TEST(a_runner_whose_answer_was_lost_gets_the_step_again),
        TEST(no_other_runner_gets_the_step),
        TEST(an_offer_that_was_taken_back_is_not_claimed),
        TEST(a_runner_that_is_over_or_unknown_is_told_so),
        TEST(who_has_no_token_of_the_id_does_not_hear_whether_it_exists),
        TEST(a_token_of_another_place_is_refused),
        TEST(a_pod_that_the_job_did_not_make_does_not_wait),
        TEST(a_claim_id_that_is_none_does_not_wait),
        TEST(no_step_comes_for_the_runner_of_a_step_whose_pod_does_not_stay),
        cmocka_unit_test_setup_teardown(without_an_engine_of_pods_there_are_no_standby_runners,
                                        setup_without_standby, world_teardown),
        TEST(a_runner_hears_where_source_and_tool_are_and_nothing_else),
        TEST(a_runner_hears_nothing_of_a_source_with_credentials),
        TEST(a_runner_of_a_class_hears_where_tools_are),
        SERVED(the_route_waits_and_gives_the_step),
        SERVED(the_route_says_what_to_get_ready),
        SERVED(the_route_refuses_as_a_claim_does),
        SERVED(a_server_that_stops_lets_its_runners_ask_elsewhere),
        SERVED(a_runner_that_left_waits_no_more),
        SERVED(a_hundred_runners_wait_at_once),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
