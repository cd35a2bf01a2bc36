/*
 * service.c - puts the spawner together in a data directory:
 *
 *   lock         flocked as long as the service lives
 *   endpoint     its URL, for clients and for runners that lost it
 *   dayfly.db    documents, audit trail, secrets (sealed)
 *   key          the key file
 *   blobs/       states and plans (sealed), logs, events, unless in a bucket (open_blobs.h)
 *   steps/       directories of the local engine
 *
 * What the cluster keeps (store: kubernetes) is not here: of dayfly.db, key and blobs/ there is
 * blobs/tmp alone then.
 */
#include "spawner/service/service.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/periodic.h"
#include "common/crypto/jwt.h"
#include "common/kube/config.h"
#include "common/process/process.h"
#include "spawner/api/routes.h"
#include "spawner/backup/restore.h"
#include "spawner/control/documents/release_finalizers.h"
#include "spawner/control/election.h"
#include "spawner/http/api.h"
#include "spawner/http/forward.h"
#include "spawner/identity/claim.h"
#include "spawner/identity/local_token.h"
#include "spawner/identity/oidc.h"
#include "spawner/identity/personal.h"
#include "spawner/journal/journal.h"
#include "spawner/model/audit_chain.h"
#include "spawner/requests/deletions.h"
#include "spawner/service/hold_directory.h"
#include "spawner/service/open_blobs.h"
#include "spawner/service/open_engines.h"
#include "spawner/steps/standby.h"
#include "spawner/store/vault/open_sources.h"
#include "spawner/terrakube/upstream.h"

struct df_service {
    struct df_spawner spawner;
    int lock_fd;
    struct df_api *api;
    struct df_election *election; /* NULL: alone */
    struct df_periodic *prober;
    struct df_blob *home; /* remembers where blobs are; NULL: they are there */
    bool has_left;        /* df_service_leave() */
};

static char *data_path(const struct df_service *s, const char *name)
{
    return df_fs_join(s->spawner.config->data_directory, name);
}

static int load_cluster(const struct df_config *c, struct df_kube_config *ret, struct df_err *err)
{
    const struct df_kube_config_options o = {.kubeconfig = c->kube_config,
                                             .context = c->kube_context};
    return df_kube_config_load(&o, ret, err) < 0 ? df_err_wrap(err, "kubernetes") : 0;
}

static const char *cluster_namespace(const struct df_service *s)
{
    return df_config_namespace(s->spawner.config, s->spawner.kube);
}

/* Where the Jobs of new steps are. */
static const char *step_namespace(const struct df_service *s)
{
    const char *configured = s->spawner.config->kube_step_space;
    return configured ? configured : cluster_namespace(s);
}

/* The bearer token of this service in the cluster; the caller wipes and frees it. NULL: none. */
static char *own_token(const struct df_kube_config *config)
{
    char *token = NULL;
    if (config->token || !config->token_file)
        return config->token ? strdup(config->token) : NULL;
    return df_kube_read_secret(config->token_file, DF_LIMIT_TOKEN, &token, NULL) < 0 ? NULL : token;
}

/* The service account that this service itself uses, as "namespace/name". NULL: it uses none (a
 * kubeconfig with a certificate), or there is no memory. The token is our own and therefore not
 * verified. The caller frees. */
static char *own_account(const struct df_kube_config *config)
{
    static const char prefix[] = "system:serviceaccount:";
    DF_JSON cJSON *claims = NULL;
    char *token = own_token(config);
    if (!token)
        return NULL;
    const char *subject =
        df_jwt_peek(token, &claims, NULL) == 0 ? df_json_str(claims, "sub") : NULL;
    df_str_wipe(&token);
    if (!subject || !df_starts_with(subject, prefix))
        return NULL;
    char *account = strdup(subject + sizeof(prefix) - 1);
    char *colon = account ? strchr(account, ':') : NULL;
    if (colon)
        *colon = '/';
    return account;
}

/* The client of the cluster, and which names no step may have, as far as configuration and cluster
 * tell. */
static int connect_cluster(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    struct df_kube_config config = {0};
    DF_FREE char *account = NULL;
    if (p->config->in_cluster || p->config->needs_cluster) {
        if (load_cluster(p->config, &config, err) < 0)
            return -1;
        account = own_account(&config);
        if (df_kube_new(&config, &p->kube, err) < 0)
            return df_err_wrap(err, "kubernetes");
    }
    const char *name_space = step_namespace(s);
    return df_config_never(p->config, name_space ? name_space : "", account, &p->never, err);
}

static int sign_audit(const struct df_spawner *p, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    if (df_vault_key(p->vault, DF_AUDIT_KEY_PURPOSE, key, err) < 0)
        return -1;
    df_store_sign_audit(p->store, key);
    explicit_bzero(key, sizeof(key));
    return 0;
}

/* Documents and secrets; blobs next to them, or in a bucket. */
static int open_vault(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    const char *name_space = cluster_namespace(s);
    if (p->config->in_cluster)
        return df_store_kube_open(p->kube, DF_API_GROUP, name_space, &p->store, err) < 0
                   ? -1
                   : df_vault_kube_open(p->kube, name_space, &p->vault, err);
    DF_FREE char *database = data_path(s, "dayfly.db");
    DF_FREE char *key = data_path(s, "key");
    if (!database || !key)
        return df_fail_oom(err);
    return df_store_sqlite_open(database, &p->store, err) < 0
               ? -1
               : df_vault_open(database, key, &p->vault, err);
}

static int open_sources(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    const struct df_sources_options o = {.sources = p->config->secret_sources,
                                         .kube = p->kube,
                                         .name_space = cluster_namespace(s),
                                         .never = &p->never};
    struct df_sources *sources = NULL;
    if (df_sources_open(&o, &sources, err) < 0)
        return -1;
    df_vault_set_sources(p->vault, sources);
    return 0;
}

/* Replicas may have to wait for each other before blobs are moved. */
static int connect_for_move(const struct df_config *c, struct df_kube **ret, struct df_err *err)
{
    struct df_kube_config config = {0};
    if (!c->in_cluster || !c->elects || !c->blob_move)
        return 0;
    return load_cluster(c, &config, err) < 0 ? -1 : df_kube_new(&config, ret, err);
}

static void tell_of_blobs(void *arg, enum df_err_class cls, const char *message)
{
    (void)arg;
    if (cls == DF_ERR_NONE)
        df_info("blobs: %s", message);
    else if (cls == DF_ERR_SYSTEM) /* somebody has to act */
        df_error("blobs: %s", message);
    else
        df_warn("blobs: %s", message);
}

/* What is refused until here is the fault of whoever starts the service. */
static int serve_blobs(struct df_service *s, const char *directory, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    const char *location = p->config->blob_location;
    DF_FREE char *cluster = df_strf("namespace %s", cluster_namespace(s));
    if (!cluster)
        return df_fail_oom(err);
    const struct df_blob_service service = {
        .place = location                ? location
                 : p->config->in_cluster ? cluster
                                         : directory,
        .is_remote = location,
        .tell = tell_of_blobs,
    };
    return df_blob_serve(p->blobs, &service, err);
}

static int open_store(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    DF_KUBE struct df_kube *lease_kube = NULL;
    DF_FREE char *directory = data_path(s, "blobs");
    if (df_check_alloc(directory, err) < 0 || open_vault(s, err) < 0 || open_sources(s, err) < 0 ||
        sign_audit(p, err) < 0 || connect_for_move(p->config, &lease_kube, err) < 0)
        return -1;
    const struct df_blob_places places = {p->config, p->kube,  cluster_namespace(s),
                                          directory, p->vault, lease_kube};
    if (df_open_blobs(&places, &p->blobs, &s->home, err) < 0 || serve_blobs(s, directory, err) < 0)
        return -1;
    return df_states_open(p->blobs, p->vault, &p->states, err);
}

/* The keys of the cluster that the Jobs are in. */
static int fetch_keys(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    if (df_kube_get_raw(arg, path, &answer, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(answer);
    if (!text)
        return df_fail_oom(err);
    (void)df_buf_adds(ret, text);
    return df_buf_check(ret, err);
}

static int64_t cluster_ahead_us(void *arg)
{
    return df_kube_clock_ahead_us(arg);
}

static int open_claims(struct df_service *s, struct df_err *err)
{
    const struct df_config *c = s->spawner.config;
    const struct df_claims_options o = {.fetch = s->spawner.kube ? fetch_keys : NULL,
                                        .arg = s->spawner.kube,
                                        .ahead_us = cluster_ahead_us,
                                        .issuer = c->claim_issuer,
                                        .jwks_url = c->claim_jwks_url,
                                        .ca_file = c->claim_ca_file,
                                        .namespace = step_namespace(s)};
    return c->claim_jwks_url || s->spawner.kube ? df_claims_new(&o, &s->spawner.claims, err) : 0;
}

static int open_standby(struct df_spawner *p, struct df_err *err)
{
    return p->config->runs_pods ? df_standby_new(&p->standby, err) : 0;
}

/* Before the endpoint is published: who finds the service finds the token. */
static int open_local_token(struct df_spawner *p, struct df_err *err)
{
    const struct df_config *c = p->config;
    bool has_others = df_config_has_callers(c) || df_streq(c->auth_loopback, "open");
    return has_others ? df_local_token_remove(c->data_directory, err)
                      : df_local_token_make(c->data_directory, &p->local_token, err);
}

static int start_api(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    if (p->config->kube_webhook && df_deletions_new(&p->deletions, err) < 0)
        return -1;
    if (open_local_token(p, err) < 0)
        return -1;
    if (df_api_start(p, &df_routes, &s->api, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("%s\n", p->server_url);
    if (!line)
        return df_fail_oom(err);
    return df_fs_replace(p->endpoint_file, line, strlen(line), 0600, err);
}

static int open_upstream(struct df_spawner *p, struct df_err *err)
{
    return p->config->upstream_listen ? p->upstream->open(p, err) : 0;
}

static int start_upstream(struct df_spawner *p, struct df_err *err)
{
    return p->upstream_data && !p->config->only_answers ? p->upstream->start(p, err) : 0;
}

/* A replica with another configuration may have moved the blobs since this one started. */
static int may_lead(void *arg, struct df_err *err)
{
    const struct df_service *s = arg;
    const struct df_spawner *p = &s->spawner;
    return df_blobs_check_place(p->config, s->home ? s->home : p->blobs, err);
}

/* Alone it works at once, one of several when it leads. */
static int start_work(struct df_service *s, struct df_err *err)
{
    struct df_kube_config config = {0};
    if (s->spawner.config->only_answers)
        return 0;
    if (!s->spawner.config->elects)
        return df_control_start(s->spawner.control, err);
    if (load_cluster(s->spawner.config, &config, err) < 0)
        return -1;
    const struct df_leader_check check = {may_lead, s};
    return df_election_start(&s->spawner, &config, cluster_namespace(s), &check, &s->election, err);
}

static int wait_for_store(struct df_service *s, struct df_err *err)
{
    return s->spawner.config->in_cluster ? df_store_kube_wait(s->spawner.store, err) : 0;
}

/* What there is in the cluster of documents and of Jobs is listed side by side. One of several
 * replicas needs the Jobs only when it leads (election.h). */
static int watch_engines(const struct df_spawner *p, struct df_err *err)
{
    bool acts_now = !p->config->elects && !p->config->only_answers;
    return acts_now ? df_engine_registry_watch(&p->engines, err) : 0;
}

/* Three requests a minute cost nothing, and an alert wants to know within one: a store that takes
 * every request and answers none is found out after most of a minute. What failed is watched more
 * closely, because somebody is waiting. */
#define PERIOD_US INT64_C(20000000)
#define PERIOD_FAILING_US INT64_C(5000000)

static int64_t probe(void *arg)
{
    struct df_blob *blobs = arg;
    df_blob_probe(blobs);
    return df_blob_check(blobs, NULL) < 0 ? PERIOD_FAILING_US : PERIOD_US;
}

/* Learns how the store of the blobs is while nobody asks for a blob: /readyz, metrics and `dayfly
 * why` say it, and must not wait for a store that does not answer. */
static int start_probe(struct df_service *s, struct df_err *err)
{
    return df_periodic_start(probe, s->spawner.blobs, PERIOD_US, &s->prober, err) < 0
               ? df_err_wrap(err, "the thread that asks the store of blobs")
               : 0;
}

/* In this order each part finds those that it uses: the control loop's memory is there before the
 * API answers, the API's address is known before the loop starts a runner. The control loop hears
 * of a write before the journal's subscribers do, who then read the same documents: the write's
 * consequence goes first, its telling after it. */
static int start(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    p->endpoint_file = data_path(s, "endpoint");
    if (df_check_alloc(p->endpoint_file, err) < 0 ||
        df_hold_directory(p->config->data_directory, p->endpoint_file, &s->lock_fd, err) < 0 ||
        df_restore_check_finished(p->config->data_directory, err) < 0 ||
        connect_cluster(s, err) < 0 || open_store(s, err) < 0 ||
        df_control_new(p, &p->control, err) < 0 || df_journal_new(p->store, &p->journal, err) < 0 ||
        df_open_engines(p, cluster_namespace(s), step_namespace(s), err) < 0 ||
        watch_engines(p, err) < 0 || wait_for_store(s, err) < 0 || df_check_engines(p, err) < 0 ||
        open_claims(s, err) < 0 ||
        (p->config->oidc.issuer && df_oidc_new(&p->config->oidc, &p->oidc, err) < 0) ||
        df_personal_new(p->vault, &p->personal, err) < 0 || open_standby(p, err) < 0 ||
        open_upstream(p, err) < 0 || start_api(s, err) < 0 || start_probe(s, err) < 0 ||
        start_work(s, err) < 0)
        return -1;
    if (start_upstream(p, err) == 0)
        return 0;
    df_service_leave(s, false); /* what works already ends before its parts are closed */
    return -1;
}

static void close_all(struct df_service *s)
{
    struct df_spawner *p = &s->spawner;
    if (p->upstream_data)
        p->upstream->stop(p);
    if (s->api)
        df_api_stop(s->api);
    df_periodic_stop(s->prober);
    df_engine_registry_close(&p->engines);
    df_control_free(p->control);
    df_journal_free(p->journal);
    df_election_free(s->election);
    df_claims_free(p->claims);
    df_oidc_free(p->oidc);
    df_personal_free(p->personal);
    df_standby_free(p->standby);
    df_deletions_free(p->deletions);
    if (p->states)
        df_states_close(p->states);
    df_blob_close(p->blobs);
    df_blob_close(s->home);
    if (p->vault)
        df_vault_close(p->vault);
    df_store_close(p->store);
    df_kube_free(s->spawner.kube);
    df_never_free(&s->spawner.never);
    df_release_directory(s->lock_fd);
    df_memory_free(&p->memory);
    if (p->upstream_data)
        p->upstream->close(p);
    df_str_wipe(&p->local_token);
    free(p->server_url);
    free(p->endpoint_file);
    free(s);
}

int df_service_start(const struct df_config *config, struct df_service **ret, struct df_err *err)
{
    struct df_service *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    df_process_protect(); /* from the modules of its steps */
    s->lock_fd = -1;
    s->spawner.config = config;
    s->spawner.upstream = &df_terrakube_upstream;
    if (start(s, err) < 0) {
        close_all(s);
        if (err && err->cls == DF_ERR_NOT_FOUND)
            err->cls = DF_ERR_USER;
        return -1;
    }
    *ret = s;
    return 0;
}

const char *df_service_url(const struct df_service *s)
{
    return s->spawner.server_url;
}

struct df_spawner *df_service_spawner(struct df_service *s)
{
    return &s->spawner;
}

void df_service_leave(struct df_service *s, bool cancel_steps)
{
    if (s->has_left)
        return;
    s->has_left = true;
    df_blob_hasten(s->spawner.blobs);
    if (s->election)
        df_election_close(s->election);
    df_control_stop(s->spawner.control, cancel_steps);
    if (s->spawner.config->in_cluster && df_leads(&s->spawner))
        df_release_finalizers(&s->spawner, cluster_namespace(s));
    if (s->election)
        df_election_stop(s->election);
}

void df_service_stop(struct df_service *s, bool cancel_steps)
{
    df_service_leave(s, cancel_steps);
    close_all(s);
}
