/*
 * Finds the service in the order of connect.h. Read open_connection(), then find(), which locks the
 * data directory and starts an embedded service, or connects to the process that holds it.
 */
#include "spawner/cli/connect.h"

#include <poll.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "spawner/cli/login/logins.h"
#include "spawner/identity/local_token.h"
#include "spawner/service/service.h"
#include "spawner/store/documents/holder.h"

#define RETRY_MS 15000 /* for an answer of the process that holds the directory */
#define PAUSE_MS 50

struct df_connection {
    struct df_connect_options options;
    enum df_service_kind kind;
    bool is_replaceable; /* the running service that was joined: may this process take its place? */
    struct df_client_address address;
    struct df_client *client;
    struct df_config config;
    struct df_service *service; /* embedded only */
};

/* ---- identity and client ---- */

static int read_token(const char *path, char **ret, struct df_err *err)
{
    struct df_buf b = DF_BUF_INIT(DF_LIMIT_TOKEN);
    if (df_fs_read(path, &b, err) < 0) {
        df_buf_wipe(&b);
        err->cls = DF_ERR_USER;
        return df_err_wrap(err, "--token-file");
    }
    char *text = strndup(df_buf_str(&b), strcspn(df_buf_str(&b), "\r\n"));
    df_buf_wipe(&b);
    if (!text)
        return df_fail_oom(err);
    if (!*text) {
        free(text);
        return df_fail(err, DF_ERR_USER, "--token-file %s: is empty", path);
    }
    *ret = text;
    return 0;
}

static int set_identity(struct df_connection *c, struct df_err *err)
{
    const char *env = getenv("DAYFLY_TOKEN");
    if (c->options.token_file)
        return read_token(c->options.token_file, &c->address.token, err);
    return df_str_empty(env) ? 0 : df_str_set(&c->address.token, env, err);
}

static char *without_slash(const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    return strndup(url, n);
}

/* The token that the service of this data directory made for its user (local_token.h), unless the
 * caller has one or a login. */
static int set_local_token(struct df_connection *c, const char *directory, struct df_err *err)
{
    return c->address.token || c->address.is_login
               ? 0
               : df_local_token_read(directory, &c->address.token, err);
}

/* The login of `dayfly login` for the service with this URL, unless the caller has a token. */
static int set_login(struct df_connection *c, const char *url, struct df_err *err)
{
    DF_FREE char *key = without_slash(url);
    c->address.is_login = false;
    if (c->address.token)
        return 0;
    return df_check_alloc(key, err) < 0 ? -1 : df_logins_has(key, &c->address.is_login, err);
}

static int set_client(struct df_connection *c, const char *url, struct df_err *err)
{
    free(c->address.url);
    c->address.url = without_slash(url);
    if (!c->address.url)
        return df_fail_oom(err);
    df_client_free(c->client);
    c->client = NULL;
    return df_client_new(&c->address, &c->client, err);
}

/* ---- finding the service ---- */

/* The log of an embedded service would mix with the output of the command. Therefore it contains
 * only errors, unless DAYFLY_LOG_LEVEL is set. */
static void set_log(const struct df_config *config)
{
    if (getenv("DAYFLY_LOG_LEVEL"))
        df_log_setup(config->log_level, config->log_json, "spawner");
}

static int load_config(struct df_connection *c, struct df_err *err)
{
    DF_STRS struct df_strs overrides = {0};
    (void)df_strs_add(&overrides, "listen=127.0.0.1:0");
    if (c->options.data_directory)
        (void)df_strs_addf(&overrides, "dataDirectory=%s", c->options.data_directory);
    if (df_strs_check(&overrides, err) < 0 ||
        df_config_load(c->options.config, environ, &overrides, &c->config, err) < 0)
        return -1;
    c->config.embedded = true;
    c->config.only_answers = c->options.as == DF_CONNECT_LOOK;
    set_log(&c->config);
    return 0;
}

/* A service of this machine stores the CA that its clients must trust in its data directory. */
static int trust_data_directory(struct df_connection *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->config.data_directory, "ca.pem");
    if (!path)
        return df_fail_oom(err);
    if (!c->address.ca_file && df_fs_exists(path))
        c->address.ca_file = DF_TAKE(path);
    return 0;
}

static int start_service(struct df_connection *c, struct df_err *err)
{
    if (df_service_start(&c->config, &c->service, err) == 0)
        return 0;
    if (!df_streq(err->reason, "EngineMissing") || c->options.as == DF_CONNECT_WORK)
        return -1;
    c->config.only_answers = true; /* which needs no engine */
    return df_service_start(&c->config, &c->service, err);
}

static int start_embedded(struct df_connection *c, struct df_err *err)
{
    if (start_service(c, err) < 0)
        return -1;
    c->kind = DF_SERVICE_EMBEDDED;
    if (set_local_token(c, c->config.data_directory, err) < 0)
        return -1;
    return trust_data_directory(c, err) < 0 ? -1 : set_client(c, df_service_url(c->service), err);
}

/* The URL of the service that holds or held the data directory. The caller frees *ret. */
static int read_endpoint(const char *directory, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(directory, "endpoint");
    DF_BUF struct df_buf url = DF_BUF_INIT(DF_LIMIT_URL);
    if (df_fs_read(path, &url, err) < 0)
        return -1;
    return df_check_alloc(*ret = strndup(df_buf_str(&url), strcspn(df_buf_str(&url), "\r\n")), err);
}

/* True for a command that runs the service beside its own work: when it ends, another command may
 * do the same. A `dayfly serve` has engines and settings of its own and is started again by whoever
 * runs it. */
static bool is_command(const struct df_holder *holder)
{
    const char *verb = strrchr(holder->command, ' ');
    return verb && !df_streq(verb, " serve");
}

/* Connects to the URL in <data>/endpoint; fails if no service answers there. */
static int join_running(struct df_connection *c, struct df_err *err)
{
    DF_FREE char *url = NULL;
    struct df_holder holder = {0};
    c->is_replaceable = df_holder_find(c->config.data_directory, &holder) && is_command(&holder);
    if (read_endpoint(c->config.data_directory, &url, err) < 0 || set_login(c, url, err) < 0 ||
        set_local_token(c, c->config.data_directory, err) < 0 || trust_data_directory(c, err) < 0 ||
        set_client(c, url, err) < 0)
        return -1;
    c->kind = DF_SERVICE_RUNNING;
    return df_client_alive(c->client, err);
}

static int fail_silent(const struct df_connection *c, const struct df_err *last, struct df_err *err)
{
    struct df_holder holder = {0};
    const char *directory = c->config.data_directory;
    if (!df_holder_find(directory, &holder))
        return df_fail(err, DF_ERR_RETRY,
                       "another process holds the data directory %s but does not answer: %s",
                       directory, last->message);
    return df_fail(err, DF_ERR_RETRY,
                   "process %d (%s) holds the data directory %s but does not answer: %s",
                   (int)holder.pid, holder.command, directory, last->message);
}

/* The process that holds the lock of the data directory is the only service. A process that has
 * just taken the lock may need a moment until it answers. */
static int find(struct df_connection *c, struct df_err *err)
{
    struct df_err last = {0};
    for (int64_t end = df_mono_ms() + RETRY_MS; df_mono_ms() < end;) {
        if (start_embedded(c, err) == 0)
            return 0;
        if (!df_streq(err->reason, "Busy"))
            return -1;
        if (join_running(c, &last) == 0)
            return 0;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return fail_silent(c, &last, err);
}

/* Connects to a running service. Starts none, and does not touch the lock. */
static int find_running(struct df_connection *c, struct df_err *err)
{
    struct df_holder holder = {0};
    struct df_err why = {0};
    if (!df_holder_find(c->config.data_directory, &holder))
        return df_fail_reason(
            err, DF_ERR_RETRY, "NobodyServes", "no dayfly process serves the data directory %s%s",
            c->config.data_directory,
            c->kind == DF_SERVICE_RUNNING ? ": start `dayfly serve` again, as it was started before"
                                          : "");
    if (join_running(c, &why) == 0)
        return 0;
    /* Who has just taken the directory has not written its address yet. */
    return why.cls == DF_ERR_NOT_FOUND ? fail_silent(c, &why, err) : df_err_pass(err, &why);
}

static int look_for(struct df_connection *c, struct df_err *err)
{
    return c->options.as == DF_CONNECT_RUNNING ? find_running(c, err) : find(c, err);
}

/* "localhost" and "127.0.0.1" are one name in the URL of a service of this machine. */
static bool is_same_url(const char *named, const char *endpoint)
{
    static const char name[] = "http://localhost:", address[] = "http://127.0.0.1:";
    size_t n = strlen(named);
    while (n && named[n - 1] == '/')
        n--;
    size_t skip =
        df_starts_with(named, name) && df_starts_with(endpoint, address) ? strlen(name) : 0;
    const char *rest = endpoint + skip; /* both prefixes are equally long */
    return strlen(rest) == n - skip && strncmp(named + skip, rest, n - skip) == 0;
}

/* If the named service is the one that holds this user's data directory now, its token is that
 * directory's. A process that listens where an earlier service did must not get it. */
static int set_token_of_named(struct df_connection *c, struct df_err *err)
{
    struct df_holder holder = {0};
    DF_FREE char *endpoint = NULL;
    /* Without a readable configuration there is no data directory, and so no token. */
    if (c->address.token || c->address.is_login || load_config(c, NULL) < 0 ||
        !df_holder_find(c->config.data_directory, &holder) ||
        read_endpoint(c->config.data_directory, &endpoint, NULL) < 0 ||
        !is_same_url(c->options.server, endpoint))
        return 0;
    return set_local_token(c, c->config.data_directory, err);
}

static int open_connection(struct df_connection *c, struct df_err *err)
{
    if (set_identity(c, err) < 0 || df_str_set(&c->address.ca_file, c->options.ca_file, err) < 0)
        return -1;
    if (c->options.server) {
        c->kind = DF_SERVICE_NAMED;
        return set_login(c, c->options.server, err) < 0 || set_token_of_named(c, err) < 0
                   ? -1
                   : set_client(c, c->options.server, err);
    }
    if (load_config(c, err) < 0)
        return -1;
    c->address.is_stray = c->address.token != NULL;
    return look_for(c, err);
}

int df_connection_open(const struct df_connect_options *o, struct df_connection **ret,
                       struct df_err *err)
{
    struct df_connection *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->options = *o;
    if (open_connection(c, err) < 0) {
        df_connection_close(c, false);
        return -1;
    }
    *ret = c;
    return 0;
}

int df_connection_again(struct df_connection *c, struct df_err *err)
{
    if (c->kind != DF_SERVICE_RUNNING)
        return df_client_alive(c->client, err);
    /* Between two services of `dayfly serve` a command may have answered: its place is not ours if
     * the work needs engines that only that service has. */
    if (c->is_replaceable) {
        if (look_for(c, err) == 0)
            return 0;
        if (!df_streq(err->reason, "EngineMissing"))
            return -1;
        c->is_replaceable = false;
    }
    return find_running(c, err);
}

struct df_client *df_connection_client(const struct df_connection *c)
{
    return c->client;
}

/* True for commands that run the service only for their own user: those that ask for a run. Any
 * other holder of the directory counts as a service for several users, which gets no variables of a
 * shell by default. */
static bool is_own_run(const char *command)
{
    static const char *const verbs[] = {" run",      " plan",    " destroy",
                                        " recreate", " approve", " state"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(verbs); i++)
        if (df_ends_with(command, verbs[i]))
            return true;
    return false;
}

const struct df_config *df_connection_shell(const struct df_connection *c)
{
    struct df_holder holder = {0};
    bool is_running = c->kind == DF_SERVICE_RUNNING &&
                      df_holder_find(c->config.data_directory, &holder) &&
                      is_own_run(holder.command);
    return c->kind == DF_SERVICE_EMBEDDED || is_running ? &c->config : NULL;
}

/* ---- closing ---- */

#define LOOK_BACK 200 /* newest runs to check: an older run does not keep this process alive */

static bool has_phase(const cJSON *run, const char *phase)
{
    return df_streq(df_run_phase(run), phase);
}

/* True if a run of the same executor waits for approval: then a Pending run needs a person. */
static bool is_blocked(const cJSON *runs, const cJSON *run)
{
    const cJSON *other = NULL;
    cJSON_ArrayForEach (other, runs) {
        if (has_phase(other, "WaitingApproval") &&
            df_streq(df_json_str(other, "spec.executorRef.name"),
                     df_json_str(run, "spec.executorRef.name")))
            return true;
    }
    return false;
}

static const char *run_under_way(const cJSON *runs)
{
    const cJSON *run = NULL;
    cJSON_ArrayForEach (run, runs) {
        if (has_phase(run, "Running") || (has_phase(run, "Pending") && !is_blocked(runs, run)))
            return df_json_str(run, "metadata.name");
    }
    return NULL;
}

bool df_connection_busy(const struct df_connection *c, char **ret_run)
{
    if (!c->service || c->config.only_answers)
        return false;
    DF_JSON cJSON *runs = NULL;
    const struct df_store_list_options newest = {.limit = LOOK_BACK, .newest_first = true};
    if (df_store_list(df_service_spawner(c->service)->store, DF_KIND_RUN, &newest, &runs, NULL,
                      NULL) < 0)
        return true; /* a step that nobody sees now still needs this service */
    const char *name = run_under_way(runs);
    if (name && ret_run)
        *ret_run = strdup(name);
    return name != NULL;
}

enum df_service_kind df_connection_kind(const struct df_connection *c)
{
    return c->kind;
}

void df_connection_close(struct df_connection *c, bool cancel_steps)
{
    if (!c)
        return;
    df_client_free(c->client);
    if (c->service)
        df_service_stop(c->service, cancel_steps);
    df_config_free(&c->config);
    df_client_address_free(&c->address);
    free(c);
}
