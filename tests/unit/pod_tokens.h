/*
 * pod_tokens.h - a cluster that signs tokens of pods, and the claims of runners that show them.
 * Include instead of control_world.h, behind cmocka.h and jwt_maker.h; make_keys() and free_keys()
 * are for the group of tests.
 */
#ifndef DF_TEST_POD_TOKENS_H
#define DF_TEST_POD_TOKENS_H

#include "common/http/http.h"
#include "spawner/identity/claim.h"
#include "tests/unit/control_world.h"

#define ISSUER "https://cluster.example"

static struct signer cluster_key = {.kid = "k1", .alg = "ES256"};
static bool cluster_away;

static int make_keys(void **state)
{
    (void)state;
    cluster_key.key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    return cluster_key.key && df_http_global_init(NULL) == 0 ? 0 : -1;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(cluster_key.key);
    return 0;
}

static char *cluster_keys(void)
{
    const struct signer *const one = &cluster_key;
    return set_of(&one, 1);
}

static int ask_cluster(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    (void)arg;
    DF_FREE char *keys = cluster_keys();
    if (cluster_away)
        return df_fail(err, DF_ERR_RETRY, "the API server is away");
    return df_buf_adds(ret, strstr(path, "jwks") ? keys : "{\"issuer\":\"" ISSUER "\"}");
}

#define assert_fails(call, err, class_, reason_)                                                   \
    do {                                                                                           \
        (err) = (struct df_err){0};                                                                \
        assert_int_equal(call, -1);                                                                \
        if ((err).cls != (class_) || strcmp((err).reason, reason_) != 0)                           \
            fail_msg("%s %s: %s", df_err_class_name((err).cls), (err).reason, (err).message);      \
    } while (0)

/* ---- tokens of pods ---- */

struct pod {
    const char *namespace, *name, *uid, *account, *node, *audience;
    int64_t age_s, life_s;
};

static const struct pod pod_a = {"infra", "net-1-plan-abcde", "pod-a", "runner", "node1", NULL, 10,
                                 3600};
static const struct pod pod_b = {"infra", "net-1-plan-fghij", "pod-b", "runner", "node2", NULL, 10,
                                 3600};

static char *token_of_pod(const struct pod *p, const char *uid)
{
    long long now = df_real_us() / 1000000;
    DF_FREE char *audience = p->audience ? strdup(p->audience) : df_strf("dayfly/%s", uid);
    DF_FREE char *node = p->node ? df_strf("'node':{'name':'%s','uid':'n'},", p->node) : strdup("");
    DF_FREE char *pod =
        p->name ? df_strf("'pod':{'name':'%s','uid':'%s'},", p->name, p->uid) : strdup("");
    DF_FREE char *payload = df_strf(
        "{'iss':'" ISSUER "','aud':['%s'],'iat':%lld,'nbf':%lld,'exp':%lld,'kubernetes.io':{"
        "'namespace':'%s',%s%s'serviceaccount':{'name':'%s','uid':'s'},'warnafter':1}}",
        audience, now - p->age_s, now - p->age_s, now - p->age_s + p->life_s, p->namespace, node,
        pod, p->account);
    return sign(&cluster_key, payload);
}

static int claim_as(struct world *w, const struct fake_step *s, const struct pod *p,
                    const char *body, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *request = json(body);
    DF_FREE char *token = token_of_pod(p, s->uid);
    return df_step_claim(&w->s, s->uid, token, request, ret, err);
}

static int claim_as_pod_a(struct world *w, const struct fake_step *s, const char *body, cJSON **ret,
                          struct df_err *err)
{
    return claim_as(w, s, &pod_a, body, ret, err);
}

/* ---- their world ---- */

static struct df_runner_ops job_runner;
static const struct df_engine_ops job_ops = {.close = fake_close, .runner = &job_runner};
static char job_engine[] = "job";

/* The steps of a world run in pods. Before its loop starts. */
static int move_into_pods(struct world *w)
{
    const struct df_claims_options o = {.fetch = ask_cluster, .namespace = "infra"};
    job_runner = fake_runner;
    w->config.engine = job_engine;
    w->engine.engine.ops = &job_ops;
    w->engine.kind = df_engine_kinds[DF_ENGINE_JOB];
    w->claim = claim_as_pod_a;
    cluster_away = false;
    return df_claims_new(&o, &w->s.claims, NULL);
}

static inline int pods_open(void **state)
{
    return world_setup(state) < 0 ? -1 : move_into_pods(*state);
}

/* The same, with the executor net and a run of it. */
static inline int pods_make(void **state, const char *spec, const char *request)
{
    if (pods_open(state) < 0)
        return -1;
    make_executor(*state, "net", spec);
    cJSON_Delete(make_run(*state, "net", request));
    return 0;
}

static inline int pods_start(void **state)
{
    const struct world *w = *state;
    return df_control_start(w->s.control, NULL);
}

static inline int pods_setup(void **state, const char *spec, const char *request)
{
    return pods_make(state, spec, request) < 0 ? -1 : pods_start(state);
}

#endif
