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
#include "spawner/service.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/crypto/jwt.h"
#include "common/kube/config.h"
#include "common/metrics/metrics.h"
#include "common/process/process.h"
#include "spawner/api/routes.h"
#include "spawner/control/election.h"
#include "spawner/engine/job/job.h"
#include "spawner/http/api.h"
#include "spawner/identity/claim.h"
#include "spawner/identity/local_token.h"
#include "spawner/journal/journal.h"
#include "spawner/model/labels.h"
#include "spawner/open_blobs.h"
#include "spawner/requests/deletions.h"
#include "spawner/store/documents/unclean.h"

struct df_service {
    struct df_spawner spawner;
    int lock_fd;
    struct df_api *api;
    struct df_election *election; /* NULL: alone */
};

/* ---- the data directory ---- */

static char *data_path(const struct df_service *s, const char *name)
{
    return df_fs_join(s->spawner.config->data_directory, name);
}

static int make_data_directory(const char *path, struct df_err *err)
{
    if (df_fs_mkdirs(path, 0700, err) < 0)
        return df_err_wrap(err, "dataDirectory");
    /* One that was made by hand may be open to others: states and logs lie in it. */
    if (chmod(path, 0700) < 0)
        return df_fail_errno(err, errno, "dataDirectory: close %s to others", path);
    return 0;
}

/* ", at http://127.0.0.1:8030" of the service there, or "". */
static void add_endpoint(const struct df_service *s, struct df_buf *out)
{
    DF_BUF struct df_buf url = DF_BUF_INIT(DF_KIB);
    int n = df_fs_read(s->spawner.endpoint_file, &url, NULL) < 0
                ? 0
                : (int)strcspn(df_buf_str(&url), "\n");
    if (n)
        (void)df_buf_addf(out, ", at %.*s", n, df_buf_str(&url));
}

static int fail_busy(const struct df_service *s, struct df_err *err)
{
    struct df_holder holder = {0};
    DF_BUF struct df_buf at = DF_BUF_INIT(2 * DF_KIB);
    const char *directory = s->spawner.config->data_directory;
    add_endpoint(s, &at);
    if (!df_holder_find(directory, &holder))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Busy",
                              "another dayfly process holds the data directory %s%s", directory,
                              df_buf_str(&at));
    return df_fail_reason(err, DF_ERR_CONFLICT, "Busy",
                          "process %d (%s) holds the data directory %s%s: end it first, or choose "
                          "another --data-directory",
                          (int)holder.pid, holder.command, directory, df_buf_str(&at));
}

static int fail_lock(struct df_service *s, const char *path, struct df_err *err)
{
    int saved = errno;
    (void)close(DF_TAKE_FD(s->lock_fd));
    return saved == EWOULDBLOCK ? fail_busy(s, err) : df_fail_errno(err, saved, "lock %s", path);
}

/* Whoever looks for the cause of a gap finds its time and its count, even if the process that ended
 * had no chance to write a line. */
static int note_unclean_end(const struct df_service *s, struct df_err *err)
{
    struct df_holder before = {0};
    struct df_unclean all;
    const char *directory = s->spawner.config->data_directory;
    if (df_holder_left_behind(s->lock_fd, &before)) {
        df_warn("the process before this one (%d, %s) ended without stopping: it was killed, ran "
                "out of memory, or its log ends with a fatal signal",
                (int)before.pid, before.command);
        if (df_unclean_add(directory, &before, err) < 0)
            return -1;
    }
    df_unclean_read(directory, &all);
    df_metric_set(df_metric_gauge("dayfly_unclean_ends",
                                  "Processes that held this data directory and ended without "
                                  "stopping.",
                                  NULL),
                  NULL, (double)all.count);
    return 0;
}

static int lock_data_directory(struct df_service *s, struct df_err *err)
{
    DF_FREE char *path = data_path(s, "lock");
    if (!path)
        return df_fail_oom(err);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return fail_lock(s, path, err);
    return note_unclean_end(s, err) < 0 ? -1 : df_holder_write(s->lock_fd, err);
}

/* ---- the parts ---- */

static int load_cluster(const struct df_config *c, struct df_kube_config *ret, struct df_err *err)
{
    const struct df_kube_config_options o = {.kubeconfig = c->kube_config,
                                             .context = c->kube_context};
    return df_kube_config_load(&o, ret, err) < 0 ? df_err_wrap(err, "kubernetes") : 0;
}

static int connect_cluster(struct df_service *s, struct df_err *err)
{
    const struct df_config *c = s->spawner.config;
    struct df_kube_config config = {0};
    if (!c->in_cluster && !c->runs_pods)
        return 0;
    if (load_cluster(c, &config, err) < 0)
        return -1;
    return df_kube_new(&config, &s->spawner.kube, err) < 0 ? df_err_wrap(err, "kubernetes") : 0;
}

/* Where the service and its custom resources are; NULL: there is no cluster, and nobody said. */
static const char *cluster_namespace(const struct df_service *s)
{
    const struct df_config *c = s->spawner.config;
    if (c->kube_namespace)
        return c->kube_namespace;
    return s->spawner.kube ? df_kube_namespace(s->spawner.kube) : NULL;
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
    explicit_bzero(token, strlen(token));
    free(token);
    if (!subject || !df_starts_with(subject, prefix))
        return NULL;
    char *account = strdup(subject + sizeof(prefix) - 1);
    char *colon = account ? strchr(account, ':') : NULL;
    if (colon)
        *colon = '/';
    return account;
}

/* Which names no step may have, as far as configuration and cluster tell. */
static int find_never(struct df_service *s, struct df_err *err)
{
    const char *name_space = step_namespace(s);
    DF_KUBE_CONFIG struct df_kube_config config = {0};
    if (s->spawner.kube && load_cluster(s->spawner.config, &config, err) < 0)
        return -1;
    DF_FREE char *account = own_account(&config);
    return df_config_never(s->spawner.config, name_space ? name_space : "", account,
                           &s->spawner.never, err);
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

static int open_store(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    DF_FREE char *directory = data_path(s, "blobs");
    if (!directory)
        return df_fail_oom(err);
    if (open_vault(s, err) < 0)
        return -1;
    const struct df_blob_places places = {p->config, p->kube, cluster_namespace(s), directory,
                                          p->vault};
    if (df_open_blobs(&places, &p->blobs, err) < 0)
        return -1;
    return df_states_open(p->blobs, p->vault, &p->states, err);
}

/* runner.path, else the program beside this one, else the one in PATH. The caller frees. */
static char *find_runner(const struct df_config *config)
{
    static const char name[] = "dayfly-runner";
    char self[4096];
    if (config->runner_path)
        return strdup(config->runner_path);
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
        char *beside = df_fs_join(self, name);
        if (beside && access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    const char *path = getenv("PATH");
    return path ? df_process_which(name, path) : NULL;
}

static void on_engine_change(void *arg, const char *step_name)
{
    const struct df_spawner *s = arg;
    df_control_notify(s->control, step_name);
}

static int add_engine(struct df_service *s, struct df_engine *e, struct df_err *err)
{
    if (df_engine_register(&s->spawner.engines, e, err) == 0)
        return 0;
    e->ops->close(e);
    return -1;
}

/* What no step on this machine may see: the data directory, and files with keys elsewhere. */
static int add_hidden(const struct df_config *c, struct df_strs *ret, struct df_err *err)
{
    const char *const paths[] = {c->data_directory, c->token_file, c->tls_key_file,
                                 c->state_service_token_file, c->registry_credentials_file};
    for (size_t i = 0; i < DF_ARRAY_SIZE(paths); i++)
        if (paths[i])
            (void)df_strs_add(ret, paths[i]);
    for (size_t i = 0; i < c->blob_key_files.len; i++)
        (void)df_strs_add(ret, c->blob_key_files.items[i]);
    return df_strs_check(ret, err);
}

/* *ret: the isolation of steps, or NULL: none. */
static int choose_isolation(const struct df_config *c, const char **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = df_streq(c->isolation, "none") ? NULL : c->isolation;
    if (!*ret || df_wall_probe(&why) == 0)
        return 0;
    if (df_streq(c->isolation, "strict"))
        return df_fail(err, DF_ERR_USER,
                       "engine.local.isolation: strict (the default with tokens) is not possible "
                       "here: %s; allow user namespaces, or set it to auto or none, with which a "
                       "module reads what this user reads",
                       why.message);
    df_warn("steps are not isolated (engine.local.isolation: auto): %s; their modules read what "
            "this user reads",
            why.message);
    *ret = NULL;
    return 0;
}

static int open_local(struct df_service *s, struct df_err *err)
{
    DF_STRS struct df_strs hidden = {0};
    const char *isolation = NULL;
    DF_FREE char *directory = data_path(s, "steps");
    DF_FREE char *runner = find_runner(s->spawner.config);
    struct df_engine *local = NULL;
    if (!directory)
        return df_fail_oom(err);
    if (choose_isolation(s->spawner.config, &isolation, err) < 0 ||
        add_hidden(s->spawner.config, &hidden, err) < 0)
        return -1;
    if (!runner)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "dayfly-runner is neither beside this program nor in PATH: set runner.path");
    const struct df_local_options o = {.directory = directory,
                                       .runner_path = runner,
                                       .notify = on_engine_change,
                                       .notify_arg = &s->spawner,
                                       .keep_failed = s->spawner.config->keep_failed,
                                       .isolation = isolation,
                                       .hidden = &hidden};
    return df_engine_local_new(&o, &local, err) < 0 ? -1 : add_engine(s, local, err);
}

static int open_job(struct df_service *s, struct df_err *err)
{
    const struct df_config *c = s->spawner.config;
    struct df_engine *job = NULL;
    const struct df_job_options o = {.kube = s->spawner.kube,
                                     .name_space = step_namespace(s),
                                     .image = c->kube_image,
                                     .by_secret = df_streq(c->kube_claim, "secret"),
                                     .reachable = true,
                                     .ttl_seconds = c->kube_ttl_s,
                                     .never = &s->spawner.never,
                                     .has_vault = c->in_cluster &&
                                                  df_streq(step_namespace(s), cluster_namespace(s)),
                                     .notify = on_engine_change,
                                     .notify_arg = &s->spawner};
    return df_engine_job_new(&o, &job, err) < 0 ? -1 : add_engine(s, job, err);
}

static int open_engines(struct df_service *s, struct df_err *err)
{
    const struct df_config *c = s->spawner.config;
    if (c->runs_here && open_local(s, err) < 0)
        return -1;
    return c->runs_pods ? open_job(s, err) : 0;
}

/* A df_store_visit: fails for a step of an engine that this service does not have. */
static int check_engine(const cJSON *task, void *arg, struct df_err *err)
{
    const struct df_spawner *p = arg;
    const char *engine = df_json_str(task, "spec.engine");
    if (df_engine_find(&p->engines, engine))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "EngineMissing",
                          "the data directory %s has the step %s of the engine %s, which this "
                          "command does not have: start the service that has it (`dayfly serve` "
                          "with its --config), or give this command that --config",
                          p->config->data_directory, df_json_str(task, "metadata.name"), engine);
}

/* A command that runs the service for itself does not continue the work of a service with other
 * engines: it would start the next step of a run with its own. */
static int check_engines(struct df_spawner *p, struct df_err *err)
{
    return p->config->embedded && !p->config->only_answers
               ? df_store_each(p->store, DF_KIND_TASK_ACTION, DF_LABEL_UNFINISHED "=true",
                               check_engine, p, err)
               : 0;
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

static int open_claims(struct df_service *s, struct df_err *err)
{
    const struct df_config *c = s->spawner.config;
    const struct df_claims_options o = {.fetch = s->spawner.kube ? fetch_keys : NULL,
                                        .arg = s->spawner.kube,
                                        .issuer = c->claim_issuer,
                                        .jwks_url = c->claim_jwks_url,
                                        .ca_file = c->claim_ca_file,
                                        .namespace = step_namespace(s)};
    return c->claim_jwks_url || s->spawner.kube ? df_claims_new(&o, &s->spawner.claims, err) : 0;
}

/* Before the endpoint is published: who finds the service finds the token. */
static int open_local_token(struct df_spawner *p, struct df_err *err)
{
    const struct df_config *c = p->config;
    bool has_others = c->token_file || c->accounts || df_streq(c->auth_loopback, "open");
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
    return df_election_start(&s->spawner, &config, cluster_namespace(s), &s->election, err);
}

static int wait_for_store(struct df_service *s, struct df_err *err)
{
    return s->spawner.config->in_cluster ? df_store_kube_wait(s->spawner.store, err) : 0;
}

/* In this order each part finds those that it uses: the control loop's memory is there before the
 * API answers, the API's address is known before the loop starts a runner. The control loop hears
 * of a write before the journal's subscribers do, who then read the same documents: the write's
 * consequence goes first, its telling after it. What there is in the cluster of documents and of
 * Jobs is listed side by side. */
static int start(struct df_service *s, struct df_err *err)
{
    struct df_spawner *p = &s->spawner;
    p->endpoint_file = data_path(s, "endpoint");
    if (!p->endpoint_file)
        return df_fail_oom(err);
    if (make_data_directory(p->config->data_directory, err) < 0 ||
        lock_data_directory(s, err) < 0 || connect_cluster(s, err) < 0 || find_never(s, err) < 0 ||
        open_store(s, err) < 0 || df_control_new(p, &p->control, err) < 0 ||
        df_journal_new(p->store, &p->journal, err) < 0 || open_engines(s, err) < 0 ||
        wait_for_store(s, err) < 0 || check_engines(p, err) < 0 || open_claims(s, err) < 0 ||
        start_api(s, err) < 0)
        return -1;
    return start_work(s, err);
}

static void close_all(struct df_service *s)
{
    struct df_spawner *p = &s->spawner;
    if (s->api)
        df_api_stop(s->api);
    df_engine_registry_close(&p->engines);
    df_control_free(p->control);
    df_journal_free(p->journal);
    df_election_free(s->election);
    df_claims_free(p->claims);
    df_deletions_free(p->deletions);
    if (p->states)
        df_states_close(p->states);
    if (p->blobs)
        df_blob_close(p->blobs);
    if (p->vault)
        df_vault_close(p->vault);
    df_store_close(p->store);
    df_kube_free(s->spawner.kube);
    df_never_free(&s->spawner.never);
    if (s->lock_fd >= 0) {
        df_holder_clear(s->lock_fd);
        (void)close(s->lock_fd);
    }
    if (p->local_token)
        explicit_bzero(p->local_token, strlen(p->local_token));
    free(p->local_token);
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
    if (start(s, err) < 0) {
        close_all(s);
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

void df_service_stop(struct df_service *s, bool cancel_steps)
{
    if (s->election)
        df_election_close(s->election);
    df_control_stop(s->spawner.control, cancel_steps);
    if (s->election)
        df_election_stop(s->election);
    close_all(s);
}
