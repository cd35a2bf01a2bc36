/*
 * server.c - start and stop of the HTTP server. Read start(): it opens the socket, the token file,
 * the certificate, the list of connections and the forwarder, and then starts the libmicrohttpd
 * daemon, whose callbacks are in request.c.
 */
#include "spawner/http/server.h"

#include <microhttpd.h>
#include <sys/resource.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/http/listen.h"
#include "spawner/http/mhd.h"

/* SQLite and the JSON parser need most of it. Pages that are not touched use no memory. */
#define THREAD_STACK (256 * DF_KIB)
#define STOP_MS 5000

static void connection_changed(void *cls, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct df_api *a = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        df_connections_remove(a->connections, *context);
        *context = NULL;
        return;
    }
    /* Each call overwrites what the one before it returned. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int fd = info ? info->connect_fd : -1;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *context =
        fd < 0 ? NULL : df_connections_add(a->connections, fd, info ? info->client_addr : NULL, a);
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (*context && info)
        df_intake_attach(df_connection_intake(*context), fd, info->tls_session);
}

/* Each connection needs a descriptor, and often a file: the usual soft limit of 1024 is too low. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    const rlim_t wanted = 4 * DF_LIMIT_HTTP_CONNECTIONS;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void declare_metrics(struct df_api *a)
{
    static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                    0.1,    0.25,  0.5,    1,     2.5,  5,     10};
    a->requests =
        df_metric_counter("dayfly_http_requests_total", "Requests answered.", "method,route,code");
    a->seconds = df_metric_histogram("dayfly_http_request_duration_seconds",
                                     "Time from request line to the answer, without followers.",
                                     "route", bounds, DF_ARRAY_SIZE(bounds));
    a->refused = df_metric_counter("dayfly_http_logins_refused_total",
                                   "Requests without a good token.", NULL);
    a->open = df_metric_gauge("dayfly_http_connections", "Open connections.", NULL);
}

/* Without grants it may be meant: tokens that read, and a service that nobody administrates. */
static int open_token_file(struct df_api *a, const struct df_config *config, struct df_err *err)
{
    bool any = false;
    if (df_tokens_open(config->token_file, &a->tokens, err) < 0 ||
        df_auth_check_admin(config->accounts, config->grants, a->tokens, &any, err) < 0)
        return -1;
    if (!any)
        df_warn(DF_AUTH_NO_ADMIN);
    return 0;
}

static int open_tokens(struct df_api *a, bool loopback, struct df_err *err)
{
    const struct df_config *config = a->s->config;
    if (df_config_has_callers(config))
        return open_token_file(a, config, err);
    a->is_local = loopback;
    if (loopback)
        return a->s->local_token ? df_tokens_open_local(a->s->local_token, &a->tokens, err) : 0;
    return df_fail(err, DF_ERR_USER,
                   "listen: other machines can reach %s: set auth.tokenFile, "
                   "auth.serviceAccounts or auth.grants, or listen on 127.0.0.1",
                   config->listen);
}

/* The certificate for one handshake. GnuTLS owns and frees the chain and the key. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are GnuTLS's */
static int show_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                            gnutls_pcert_st **chain, unsigned *count, gnutls_ocsp_data_st **ocsp,
                            unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags)
{
    (void)info;
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *context =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct df_api *a = context ? df_connection_owner(context->socket_context) : NULL;
    struct df_err err = {0};
    if (!a)
        return -1;
    if (df_tls_pair(a->tls, chain, count, key, &err) < 0) {
        df_error("connection refused: %s", err.message);
        return -1;
    }
    *ocsp = NULL;
    *ocsp_count = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return 0;
}

static int start_daemon(struct df_api *a, int listen_fd, struct df_err *err)
{
    /* Forward secrecy and authenticated encryption only: no CBC, no SHA-1, no RSA key exchange. */
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:"
                               "+AES-256-GCM:+AES-128-GCM:+CHACHA20-POLY1305";
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)show_certificate},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem *more = a->tls ? tls : &tls[2];
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | (a->tls ? MHD_USE_TLS : 0u);
    a->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, df_mhd_step, a, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_URI_LOG_CALLBACK, df_mhd_new, a, MHD_OPTION_NOTIFY_COMPLETED, df_mhd_end, a,
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, a, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)DF_LIMIT_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)DF_LIMIT_HTTP_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)DF_LIMIT_HTTP_HEAD, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK,
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    if (!a->daemon)
        return df_fail(err, DF_ERR_SYSTEM, "the HTTP server does not start");
    return 0;
}

static void free_api(struct df_api *a)
{
    df_liveness_stop(a->liveness);
    df_connections_free(a->connections);
    df_forwarder_free(a->forwarder);
    df_tokens_close(a->tokens);
    df_tls_close(a->tls);
    (void)pthread_mutex_destroy(&a->lock);
    (void)pthread_mutex_destroy(&a->keyed);
    (void)pthread_mutex_destroy(&a->foreign);
    (void)pthread_cond_destroy(&a->quiet);
    free(a);
}

static struct df_api *new_api(struct df_spawner *s, const struct df_route_table *routes)
{
    struct df_api *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->s = s;
    a->routes = routes;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_mutex_init(&a->keyed, NULL);
    (void)pthread_mutex_init(&a->foreign, NULL);
    df_cond_init(&a->quiet);
    declare_metrics(a);
    return a;
}

/* Takes the socket: libmicrohttpd closes it. */
static int serve(struct df_api *a, int *fd, struct df_err *err)
{
    raise_descriptor_limit();
    if (start_daemon(a, *fd, err) < 0)
        return -1;
    (void)DF_TAKE_FD(*fd);
    return 0;
}

static int start(struct df_api *a, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    bool loopback = false;
    DF_FREE char *url = NULL;
    if (df_listen(a->s->config, a->s->endpoint_file, &fd, &loopback, &url, err) < 0 ||
        open_tokens(a, loopback, err) < 0 ||
        df_tls_open(a->s->config, a->s->kube, url, &a->tls, err) < 0 ||
        df_connections_new(&a->connections, err) < 0)
        return -1;
    free(a->s->server_url);
    a->s->server_url = DF_TAKE(url);
    a->s->ca_file = df_tls_ca_file(a->tls);
    if (df_forwarder_new(a->s, &a->forwarder, err) < 0 ||
        df_liveness_start(a->s->config->livez_listen, &a->liveness, err) < 0)
        return -1;
    a->tells_address = true;
    return serve(a, &fd, err);
}

int df_api_start(struct df_spawner *s, const struct df_route_table *routes, struct df_api **ret,
                 struct df_err *err)
{
    struct df_api *a = new_api(s, routes);
    if (!a)
        return df_fail_oom(err);
    if (start(a, err) < 0) {
        free_api(a);
        return -1;
    }
    *ret = a;
    return 0;
}

int df_api_start_side(struct df_spawner *s, const struct df_route_table *routes, const char *key,
                      const char *listen, struct df_api **ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    struct df_api *a = new_api(s, routes);
    if (!a)
        return df_fail_oom(err);
    if (df_listen_at(key, listen, &fd, err) < 0 || df_connections_new(&a->connections, err) < 0 ||
        serve(a, &fd, err) < 0) {
        free_api(a);
        return -1;
    }
    *ret = a;
    return 0;
}

static void wait_until_quiet(struct df_api *a)
{
    int64_t at = df_mono_ms() + STOP_MS;
    struct timespec until = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
    (void)pthread_mutex_lock(&a->lock);
    a->stopping = true;
    while (a->in_flight && pthread_cond_timedwait(&a->quiet, &a->lock, &until) == 0)
        continue;
    unsigned left = a->in_flight;
    (void)pthread_mutex_unlock(&a->lock);
    if (left)
        df_warn("%u requests were cut off by the shutdown", left);
}

void df_api_stop(struct df_api *a)
{
    if (!a)
        return;
    MHD_socket fd = MHD_quiesce_daemon(a->daemon);
    wait_until_quiet(a);
    MHD_stop_daemon(a->daemon);
    if (a->tells_address)
        a->s->ca_file = NULL;
    if (fd != MHD_INVALID_SOCKET)
        (void)close(fd);
    free_api(a);
}
