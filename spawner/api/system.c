/*
 * system.c - handlers about the service itself: health, metrics, OpenAPI, version. /readyz and a
 * metric read the same table `checks`. These routes need no token, but the list of engines.
 */
#include "common/base/clock.h"
#include "common/kube/lease.h"
#include "common/metrics/metrics.h"
#include "spawner/api/handlers.h"
#include "spawner/api/openapi.h"
#include "spawner/config/key_files.h"
#include "spawner/http/forward.h"
#include "spawner/http/server.h"
#include "spawner/model/labels.h"

static int respond_text(struct df_response *res, int status, struct df_err *err)
{
    res->status = status;
    res->content_type = "text/plain; charset=utf-8";
    return df_buf_check(&res->body, err);
}

int df_get_livez(struct df_request *req, struct df_response *res, struct df_err *err)
{
    (void)req;
    (void)df_buf_adds(&res->body, "ok\n");
    return respond_text(res, 200, err);
}

static int check_store(struct df_api *a, struct df_err *err)
{
    const struct df_store_list_options one = {.limit = 1};
    DF_JSON cJSON *list = NULL;
    return df_store_list(a->s->store, DF_KIND_EXECUTOR, &one, &list, NULL, err);
}

/* The store of the blobs, as its last calls found it, and the keys that the next start needs. */
static int check_bucket(struct df_api *a, struct df_err *err)
{
    return df_blob_check(a->s->blobs, err) < 0 ? -1 : df_config_check_key_files(a->s->config, err);
}

static int check_blobs(struct df_api *a, struct df_err *err)
{
    const char *dir = df_blob_tmp_dir(a->s->blobs);
    if (df_blob_check_owner(a->s->blobs, false, err) < 0)
        return -1;
    return access(dir, W_OK) < 0 ? df_fail(err, DF_ERR_SYSTEM, "%s cannot be written to", dir) : 0;
}

static int check_tokens(struct df_api *a, struct df_err *err)
{
    return a->tokens ? df_tokens_check(a->tokens, err) : 0;
}

static int check_certificate(struct df_api *a, struct df_err *err)
{
    return a->tls ? df_tls_check(a->tls, err) : 0;
}

static int check_serving(struct df_api *a, struct df_err *err)
{
    return df_api_is_stopping(a) ? df_fail(err, DF_ERR_RETRY, "the server is stopping") : 0;
}

/* Nobody executes requests then. Where documents are in the cluster, a store that refuses writes is
 * seen by this, too: the Lease is in the same etcd. */
static int check_leader(struct df_api *a, struct df_err *err)
{
    struct df_lease *lease = __atomic_load_n(&a->s->lease, __ATOMIC_ACQUIRE);
    return lease ? df_lease_check(lease, err) : 0;
}

static int check_engines(struct df_api *a, struct df_err *err)
{
    return df_engine_registry_check(&a->s->engines, err);
}

static const struct {
    const char *name;
    int (*check)(struct df_api *a, struct df_err *err);
    /* What fails for all replicas at once: it is reported and does not fail /readyz, for then no
     * replica would be left that people can ask, and what needs no blob goes on. Or NULL. */
    int (*warn)(struct df_api *a, struct df_err *err);
} checks[] = {{"store", check_store, NULL},    {"blobs", check_blobs, check_bucket},
              {"tokens", check_tokens, NULL},  {"certificate", check_certificate, NULL},
              {"leader", check_leader, NULL},  {"engines", check_engines, NULL},
              {"serving", check_serving, NULL}};

enum health { HEALTHY, WARNS, FAILED };

static enum health health_of(size_t i, struct df_api *a, struct df_err *why)
{
    if (checks[i].check(a, why) < 0)
        return FAILED;
    return checks[i].warn && checks[i].warn(a, why) < 0 ? WARNS : HEALTHY;
}

/* Whoever asks has no token: the cause, which may name accounts and files, is for the log. */
static void cut_cause(struct df_err *why)
{
    char *cause = strstr(why->message, ": ");
    if (cause)
        (void)snprintf(cause, sizeof(why->message) - (size_t)(cause - why->message),
                       "; the log and `dayfly doctor` say why");
}

int df_get_readyz(struct df_request *req, struct df_response *res, struct df_err *err)
{
    static const char *const marks[] = {"[+]", "[!]", "[-]"};
    static const char *const ends[] = {"ok\n", "ok, but not all of it: see [!]\n", "not ready\n"};
    enum health worst = HEALTHY;
    bool verbose = false;
    if (df_request_flag(req, "verbose", &verbose, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(checks); i++) {
        struct df_err why = {0};
        enum health health = health_of(i, req->api, &why);
        worst = health > worst ? health : worst;
        if (health == WARNS)
            cut_cause(&why);
        if (verbose || health != HEALTHY)
            (void)df_buf_addf(&res->body, "%s %s%s%s\n", marks[health], checks[i].name,
                              health == HEALTHY ? " ok" : ": ", why.message);
    }
    (void)df_buf_adds(&res->body, ends[worst]);
    return respond_text(res, worst == FAILED ? 503 : 200, err);
}

static const char *const phases[] = {"Pending", "Running", "WaitingApproval"};

struct crowd {
    unsigned runs[DF_ARRAY_SIZE(phases)];
    int64_t oldest_us[DF_ARRAY_SIZE(phases)]; /* when it was created; 0: there is none */
};

/* A df_store_visit. A run without a phase is not accepted yet, and counts as pending. */
static int count(const cJSON *run, void *arg, struct df_err *err)
{
    struct crowd *c = arg;
    const char *phase = df_json_str(run, "status.phase");
    int64_t created_us = 0;
    (void)err;
    size_t i = 0;
    while (i < DF_ARRAY_SIZE(phases) && phase && !df_streq(phases[i], phase))
        i++;
    if (i == DF_ARRAY_SIZE(phases))
        return 0;
    c->runs[i]++;
    if (df_time_parse(df_json_str(run, "metadata.creationTimestamp"), &created_us, NULL) == 0 &&
        (c->oldest_us[i] == 0 || created_us < c->oldest_us[i]))
        c->oldest_us[i] = created_us;
    return 0;
}

static void measure_runs(struct df_spawner *s)
{
    struct df_metric *runs =
        df_metric_gauge("dayfly_runs", "Runs that have not ended, by phase.", "phase");
    struct df_metric *age =
        df_metric_gauge("dayfly_oldest_run_age_seconds",
                        "Age of the oldest run in this phase; 0: there is none.", "phase");
    struct crowd c = {0};
    if (df_store_each(s->store, DF_KIND_RUN, DF_LABEL_UNFINISHED "=true", count, &c, NULL) < 0)
        return;
    for (size_t i = 0; i < DF_ARRAY_SIZE(phases); i++) {
        int64_t age_us = c.oldest_us[i] ? df_real_us() - c.oldest_us[i] : 0;
        df_metric_set(runs, phases[i], c.runs[i]);
        df_metric_set(age, phases[i], age_us > 0 ? (double)age_us / 1e6 : 0);
    }
}

/* What nobody keeps count of: who leads, and the runs that have not ended. Runs that cannot be read
 * leave their figures as they were. */
static void measure_documents(struct df_spawner *s, bool leads)
{
    df_metric_set(df_metric_gauge("dayfly_leads",
                                  "1 on the replica that leads; a single service always does.",
                                  NULL),
                  NULL, leads ? 1 : 0);
    measure_runs(s);
}

static void measure_health(struct df_api *a)
{
    struct df_metric *health = df_metric_gauge(
        "dayfly_ready", "Parts of the service, as /readyz sees them: 1 healthy, 0 failed.",
        "component");
    for (size_t i = 0; i < DF_ARRAY_SIZE(checks); i++)
        df_metric_set(health, checks[i].name, health_of(i, a, NULL) == HEALTHY);
}

int df_get_metrics(struct df_request *req, struct df_response *res, struct df_err *err)
{
    measure_health(req->api);
    measure_documents(req->s, df_leads(req->s));
    df_metric_set(req->api->open, NULL, (double)df_connections_count(req->api->connections));
    res->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return df_metrics_write(&res->body, err);
}

int df_get_openapi(struct df_request *req, struct df_response *res, struct df_err *err)
{
    (void)req;
    (void)err;
    res->fixed = df_openapi; /* a copy for each of a thousand slow readers would be 100 MiB */
    res->fixed_len = df_openapi_len();
    res->content_type = "application/yaml";
    return 0;
}

int df_get_version(struct df_request *req, struct df_response *res, struct df_err *err)
{
    (void)req;
    DF_JSON cJSON *doc =
        df_json_object(DF_STR("version", DF_VERSION), DF_STR("apiVersion", DF_API_VERSION));
    if (!doc)
        return df_fail_oom(err);
    return df_respond_json(res, 200, doc, err);
}

int df_list_engines(struct df_request *req, struct df_response *res, struct df_err *err)
{
    cJSON *items = NULL;
    if (df_engine_list(&req->s->engines, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}
