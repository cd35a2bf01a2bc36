/*
 * forward.c - df_forward() starts a thread that sends the request to the leader. This thread writes
 * the body of the response into a pipe. The connection's own thread reads the pipe, and checks
 * every 250 ms that the leader is still the same. Read df_forward(), ask_leader(), relay_next().
 */
#include "spawner/http/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/http/http.h"
#include "common/kube/lease.h"
#include "spawner/http/problem.h"

#define FORWARDED "Dayfly-Forwarded" /* this header stops a second forwarding */
#define KEPT 8                       /* idle connections to the leader that are kept */
#define IDLE_MS 60000                /* above the 15 s heartbeat of streams */
#define LEADER_CHECK_MS 250          /* how often a waiting request checks who leads */

struct df_forwarder {
    struct df_spawner *s;
    char *server_name; /* the name in the leader's certificate; NULL: no TLS */
    pthread_mutex_t lock;
    struct df_http *kept[KEPT];
    size_t kept_count;
};

/* One forwarded request. It is the source of the response stream; its thread writes into the
 * pipe. */
struct relay {
    struct df_stream_source base;
    struct df_forwarder *f;
    int64_t epoch; /* of the leader that got the request */
    struct df_http *http;
    struct df_http_request request;
    char *url;
    struct df_strs headers;
    struct df_buf body;
    int body_fd;
    pthread_t thread;
    bool has_thread;
    volatile bool stop;
    int reader, writer; /* of the pipe */

    pthread_mutex_t lock; /* guards the rest until the thread has ended */
    pthread_cond_t changed;
    bool has_head, has_ended;
    struct df_http_response head; /* status and headers, known before the body */
    struct df_http_response answer;
    int sent; /* what df_http_send() returned */
    struct df_err err;
};

int df_fail_no_leader(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_RETRY, "NoLeader", "%s; try again", why);
}

/* ---- connections ---- */

static int take_connection(struct df_forwarder *f, struct df_http **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&f->lock);
    struct df_http *http = f->kept_count ? f->kept[--f->kept_count] : NULL;
    (void)pthread_mutex_unlock(&f->lock);
    const struct df_http_options o = {.ca_file = f->s->ca_file, .server_name = f->server_name};
    if (!http)
        return df_http_new(&o, ret, err);
    *ret = http;
    return 0;
}

static void keep_connection(struct df_forwarder *f, struct df_http *http)
{
    (void)pthread_mutex_lock(&f->lock);
    bool keep = f->kept_count < KEPT;
    if (keep)
        f->kept[f->kept_count++] = http;
    (void)pthread_mutex_unlock(&f->lock);
    if (!keep)
        df_http_free(http);
}

/* ---- the thread ---- */

static void on_head(void *arg, const struct df_http_response *head)
{
    struct relay *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    r->head = *head;
    r->head.body = DF_BUF_INIT(0);
    r->has_head = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static int on_data(void *arg, const char *bytes, size_t n)
{
    struct relay *r = arg;
    return df_fs_write_all(r->writer, bytes, n, NULL); /* fails after relay_free() */
}

static void *ask_leader(void *arg)
{
    struct relay *r = arg;
    int sent = df_http_send(r->http, &r->request, &r->answer, &r->err);
    (void)close(DF_TAKE_FD(r->writer));
    (void)pthread_mutex_lock(&r->lock);
    r->sent = sent;
    r->has_ended = true;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* True if another leader was elected. A leader that hangs or has lost its network keeps its
 * requests until then. */
static bool is_replaced(const struct relay *r)
{
    struct df_lease_view now;
    df_lease_look(r->f->s->lease, &now);
    return now.epoch != r->epoch;
}

/* ---- the response ---- */

static bool wait_for_data(const struct relay *r)
{
    struct pollfd p = {.fd = r->reader, .events = POLLIN};
    while (poll(&p, 1, LEADER_CHECK_MS) <= 0)
        if (is_replaced(r))
            return false;
    return true;
}

static int relay_next(struct df_stream_source *source, struct df_buf *out)
{
    struct relay *r = (struct relay *)source;
    char piece[16 * DF_KIB];
    if (!wait_for_data(r))
        return -1;
    ssize_t n = read(r->reader, piece, sizeof(piece));
    if (n > 0)
        return df_buf_add(out, piece, (size_t)n) < 0 ? -1 : 1;
    if (r->has_thread)
        (void)pthread_join(r->thread, NULL);
    r->has_thread = false;
    return n == 0 && r->sent == 0 && !r->answer.stopped ? 0 : -1;
}

static void relay_free(struct df_stream_source *source)
{
    struct relay *r = (struct relay *)source;
    __atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
    if (r->reader >= 0)
        (void)close(r->reader);
    if (r->http)
        df_http_wake(r->http);
    if (r->has_thread)
        (void)pthread_join(r->thread, NULL);
    if (r->writer >= 0)
        (void)close(r->writer);
    if (r->body_fd >= 0)
        (void)close(r->body_fd);
    if (r->http && r->sent == 0 && r->has_ended)
        keep_connection(r->f, DF_TAKE(r->http));
    df_http_free(r->http);
    df_strs_wipe(&r->headers);
    df_buf_wipe(&r->body);
    df_buf_wipe(&r->answer.body);
    df_http_response_free(&r->answer);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    free(r->url);
    free(r);
}

static void cleanup_relay(struct relay **r)
{
    if (*r)
        relay_free(&(*r)->base);
}

static const char *known_type(const char *type)
{
    static const char *const types[] = {
        "application/json",         DF_PROBLEM_TYPE,   "text/event-stream", "application/yaml",
        "application/octet-stream", "application/zip", "text/plain"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++)
        if (df_starts_with(type, types[i]))
            return types[i];
    return *type ? "application/octet-stream" : NULL;
}

static void copy_head(const struct df_http_response *answer, struct df_response *res)
{
    res->status = answer->status;
    res->content_type = known_type(answer->content_type);
    (void)snprintf(res->etag, sizeof(res->etag), "%s", answer->etag);
    df_copy(res->location, sizeof(res->location), answer->location);
}

/* ---- the request ---- */

static int add_headers(const struct df_request *req, struct df_strs *to, struct df_err *err)
{
    static const char *const passed[] = {"Authorization", "Accept",        "Idempotency-Key",
                                         "If-Match",      "If-None-Match", "Content-MD5",
                                         "Last-Event-ID"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(passed); i++) {
        const char *value = df_request_header(req, passed[i]);
        if (value)
            (void)df_strs_addf(to, "%s: %s", passed[i], value);
    }
    (void)df_strs_add(to, FORWARDED ": 1");
    return df_strs_check(to, err);
}

static int add_body(struct relay *r, struct df_request *req, struct df_err *err)
{
    struct df_http_request *q = &r->request;
    q->content_type = df_request_header(req, "Content-Type");
    if (req->body_path) {
        struct stat st;
        r->body_fd = open(req->body_path, O_RDONLY | O_CLOEXEC);
        if (r->body_fd < 0 || fstat(r->body_fd, &st) < 0)
            return df_fail_errno(err, errno, "read the body again");
        q->body_fd = r->body_fd;
        q->body_len = (size_t)st.st_size;
    } else if (req->body.len) {
        r->body = req->body;
        req->body = DF_BUF_INIT(0);
        q->body = df_buf_str(&r->body);
        q->body_len = r->body.len;
    }
    return 0;
}

static int relay_new(struct df_forwarder *f, struct relay **ret, struct df_err *err)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (!r)
        return df_fail_oom(err);
    *r = (struct relay){.base = {relay_next, relay_free}, .f = f, .body_fd = -1, .sent = -1};
    r->body = r->answer.body = DF_BUF_INIT(0);
    df_cond_init(&r->changed);
    (void)pthread_mutex_init(&r->lock, NULL);
    int fds[2] = {-1, -1};
    int failed = pipe2(fds, O_CLOEXEC) < 0 ? errno : 0;
    r->reader = fds[0];
    r->writer = fds[1];
    if (failed) {
        relay_free(&r->base);
        return df_fail_errno(err, failed, "make a pipe");
    }
    *ret = r;
    return 0;
}

static int relay_prepare(struct relay *r, struct df_request *req, const char *leader,
                         struct df_err *err)
{
    r->url = df_strf("%s%s", leader, req->uri);
    if (!r->url)
        return df_fail_oom(err);
    r->request = DF_HTTP_REQUEST(req->method, r->url);
    r->request.headers = &r->headers;
    r->request.timeout_ms = -1;
    r->request.idle_timeout_ms = IDLE_MS;
    r->request.on_data = on_data;
    r->request.on_head = on_head;
    r->request.arg = r;
    r->request.stop = &r->stop;
    r->request.stop_wakes = true;
    if (add_headers(req, &r->headers, err) < 0 || add_body(r, req, err) < 0)
        return -1;
    return take_connection(r->f, &r->http, err);
}

/* The caller holds the lock. */
static void wait_for_change(struct relay *r)
{
    int64_t until_ms = df_mono_ms() + LEADER_CHECK_MS;
    struct timespec t = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    (void)pthread_cond_timedwait(&r->changed, &r->lock, &t);
}

/* The leader ends its wait when it loses this request. */
static bool is_abandoned(const struct df_request *req)
{
    return req->route->waits && df_request_is_gone(req);
}

static int relay_start(struct relay *r, const struct df_request *req, struct df_err *err)
{
    int failed = pthread_create(&r->thread, NULL, ask_leader, r);
    if (failed)
        return df_fail_errno(err, failed, "start a thread");
    r->has_thread = true;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->has_head && !r->has_ended && !is_replaced(r) && !is_abandoned(req))
        wait_for_change(r);
    bool answered = r->has_head || r->has_ended;
    (void)pthread_mutex_unlock(&r->lock);
    return answered ? 0 : df_fail_no_leader(err, "the replica that led has not answered");
}

static bool is_no_leader(const struct df_http_response *answer)
{
    return answer->status == 503 && answer->body.len && strstr(answer->body.data, "/NoLeader\"");
}

static int relay_answer(struct relay **r, struct df_response *res, struct df_err *err)
{
    struct relay *own = *r;
    (void)pthread_mutex_lock(&own->lock);
    bool streams = own->has_head;
    (void)pthread_mutex_unlock(&own->lock);
    if (!streams && own->sent < 0) {
        df_debug("the leader does not answer: %s", own->err.message);
        return df_fail_no_leader(err, "the leading replica does not answer");
    }
    if (!streams && is_no_leader(&own->answer))
        return df_fail_no_leader(err, "no replica leads at this moment");
    copy_head(streams ? &own->head : &own->answer, res);
    if (streams) {
        res->stream = &DF_TAKE(*r)->base;
        return 0;
    }
    df_buf_free(&res->body);
    res->body = own->answer.body;
    own->answer.body = DF_BUF_INIT(0);
    res->secret = true;
    return 0;
}

/* ---- interface ---- */

static struct df_lease *lease_of(const struct df_spawner *s)
{
    return __atomic_load_n(&s->lease, __ATOMIC_ACQUIRE);
}

bool df_leads(const struct df_spawner *s)
{
    const struct df_lease *lease = lease_of(s);
    return !s->config->elects ||
           (lease && df_lease_is_held(lease) && __atomic_load_n(&s->leads, __ATOMIC_ACQUIRE));
}

bool df_forwards(const struct df_request *req)
{
    return req->route->access != DF_ACCESS_ANYONE && !df_leads(req->s);
}

bool df_is_forwarded(const struct df_request *req)
{
    return df_request_header(req, FORWARDED) != NULL;
}

int df_offer_leader(const struct df_request *req, cJSON *answer, struct df_err *err)
{
    struct df_lease_view leader = {.address = ""};
    struct df_lease *lease = lease_of(req->s);
    if (lease)
        df_lease_look(lease, &leader);
    if (!df_starts_with(leader.address, "https://"))
        return 0;
    cJSON *offer = df_json_object_at(answer, "leader");
    return df_json_put(offer, err, DF_STR("url", leader.address),
                       DF_BOOL("forwarded", df_is_forwarded(req)));
}

int df_forward(struct df_forwarder *f, struct df_request *req, struct df_response *res,
               struct df_err *err)
{
    DF_CLEANUP(cleanup_relay) struct relay *r = NULL;
    struct df_lease_view leader = {.address = ""};
    struct df_lease *lease = lease_of(f->s);
    if (lease)
        df_lease_look(lease, &leader);
    if (df_is_forwarded(req) || !leader.address[0])
        return df_fail_no_leader(err, "no replica leads at this moment");
    if (relay_new(f, &r, err) < 0)
        return -1;
    r->epoch = leader.epoch;
    if (relay_prepare(r, req, leader.address, err) < 0 || relay_start(r, req, err) < 0)
        return -1;
    return relay_answer(&r, res, err);
}

int df_forwarder_new(struct df_spawner *s, struct df_forwarder **ret, struct df_err *err)
{
    struct df_forwarder *f = calloc(1, sizeof(*f));
    if (!f)
        return df_fail_oom(err);
    f->s = s;
    if (df_starts_with(s->server_url, "https://")) {
        f->server_name = df_url_host(s->server_url);
        if (!f->server_name) {
            free(f);
            return df_fail_oom(err);
        }
    }
    (void)pthread_mutex_init(&f->lock, NULL);
    *ret = f;
    return 0;
}

void df_forwarder_free(struct df_forwarder *f)
{
    if (!f)
        return;
    while (f->kept_count)
        df_http_free(f->kept[--f->kept_count]);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->server_name);
    free(f);
}
