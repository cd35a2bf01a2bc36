#include "spawner/api/glue.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "spawner/api/admit.h"
#include "spawner/api/forward.h"
#include "spawner/api/problem.h"
#include "spawner/api/server.h"
#include "spawner/api/trail.h"

/* A streamed answer is made in pieces; the largest is an escaped document or log frame. */
#define OUTGOING_MAX (16 * DF_MIB)

struct exchange {
    struct df_request req;
    struct df_response res;
    struct df_err err; /* why it failed; cls NONE while it has not */
    bool started;      /* the head has been looked at */
    bool counted;      /* in df_api.in_flight */
    bool alone;        /* nobody leads: answered from what is known here */
    int64_t began_us;
    uint64_t taken; /* bytes of the body so far */
    int body_fd;
    struct df_buf outgoing; /* of a stream: made and not sent yet, from sent on */
    size_t sent;
    bool stream_ended;
};

static bool failed(const struct exchange *x)
{
    return x->err.cls != DF_ERR_NONE;
}

bool df_api_is_stopping(struct df_api *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping;
    (void)pthread_mutex_unlock(&a->lock);
    return stopping;
}

/* ---- begin and end of an exchange ---- */

void *df_exchange_new(void *api, const char *uri, struct MHD_Connection *connection)
{
    struct exchange *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    x->req.api = api;
    x->req.s = x->req.api->s;
    x->req.connection = connection;
    x->req.body = DF_BUF_INIT(0);
    x->res.body = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    x->res.fd = -1;
    x->res.status = 200;
    x->body_fd = -1;
    x->outgoing = DF_BUF_INIT(OUTGOING_MAX);
    x->began_us = df_mono_us();
    (void)snprintf(x->req.caller.name, sizeof(x->req.caller.name), "anonymous");
    x->req.uri = strdup(uri ? uri : "");
    if (!x->req.uri)
        (void)df_fail_oom(&x->err);
    else if (df_target_parse(x->req.uri, &x->req.target, &x->err) < 0)
        x->req.target = (struct df_target){0};
    return x;
}

static void drop_other_bodies(struct df_response *res)
{
    if (res->stream)
        res->stream->free(res->stream);
    res->stream = NULL;
    if (res->fd >= 0)
        (void)close(DF_TAKE_FD(res->fd));
}

static void free_exchange(struct exchange *x)
{
    df_target_free(&x->req.target);
    free(x->req.uri);
    df_credentials_wipe(&x->req.credentials);
    df_buf_wipe(&x->req.body);
    df_json_wipe(x->req.json);
    if (x->req.body_path)
        (void)unlink(x->req.body_path);
    free(x->req.body_path);
    if (x->body_fd >= 0)
        (void)close(x->body_fd);
    if (x->res.secret)
        df_buf_wipe(&x->res.body);
    df_buf_free(&x->res.body);
    drop_other_bodies(&x->res);
    cJSON_Delete(x->res.problem_extra);
    df_buf_free(&x->outgoing);
    free(x);
}

static struct df_connection *watched(struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->req.connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void count(struct exchange *x, int by)
{
    struct df_api *a = x->req.api;
    (void)pthread_mutex_lock(&a->lock);
    a->in_flight = by > 0 ? a->in_flight + 1 : a->in_flight - 1;
    if (a->in_flight == 0)
        (void)pthread_cond_broadcast(&a->quiet);
    (void)pthread_mutex_unlock(&a->lock);
    x->counted = by > 0;
}

static void measure(const struct exchange *x)
{
    const struct df_api *a = x->req.api;
    const char *route = x->req.route ? x->req.route->pattern : "none";
    double seconds = (double)(df_mono_us() - x->began_us) / 1e6;
    char labels[160];
    /* An unknown method is the caller's word: it must not make a series. */
    (void)snprintf(labels, sizeof(labels), "%s,%s,%d", x->req.route ? x->req.method : "other",
                   route, x->res.status);
    df_metric_add(a->requests, labels, 1);
    if (!x->res.stream)
        df_metric_observe(a->seconds, route, seconds);
    df_debug("%s %s: %d in %.1f ms, for %s", x->req.route ? x->req.method : "other", route,
             x->res.status, seconds * 1e3, x->req.caller.name);
}

void df_exchange_end(void *api, struct MHD_Connection *connection, void **con_cls,
                     enum MHD_RequestTerminationCode how)
{
    (void)connection;
    (void)how;
    struct exchange *x = *con_cls;
    *con_cls = NULL;
    if (!x)
        return;
    df_connections_busy(((struct df_api *)api)->connections, watched(x), false);
    if (x->started)
        measure(x);
    if (x->counted)
        count(x, -1);
    free_exchange(x);
}

/* ---- the answer ---- */

static ssize_t pull(void *cls, uint64_t position, char *to, size_t max)
{
    (void)position;
    struct exchange *x = cls;
    while (x->sent == x->outgoing.len) {
        if (x->stream_ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        df_buf_free(&x->outgoing); /* a follower may wait for hours: it keeps nothing */
        x->sent = 0;
        int more = x->res.stream->next(x->res.stream, &x->outgoing);
        if (more < 0 || x->outgoing.failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        x->stream_ended = more == 0;
    }
    size_t left = x->outgoing.len - x->sent, n = left < max ? left : max;
    memcpy(to, x->outgoing.data + x->sent, n);
    x->sent += n;
    return (ssize_t)n;
}

static struct MHD_Response *make_answer(struct exchange *x)
{
    if (x->res.stream)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * DF_KIB, pull, x, NULL);
    if (x->res.fd >= 0) {
        int fd = DF_TAKE_FD(x->res.fd);
        struct MHD_Response *r = MHD_create_response_from_fd64((uint64_t)x->res.fd_size, fd);
        if (!r)
            (void)close(fd);
        return r;
    }
    /* The body lives in the exchange, which outlives its sending. */
    return MHD_create_response_from_buffer(x->res.body.len, x->res.body.data,
                                           MHD_RESPMEM_PERSISTENT);
}

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (!df_str_empty(value))
        (void)MHD_add_response_header(r, name, value);
}

/* tofu waits for ever on a connection that it kept to a replica that froze: a new one goes to
 * whichever is ready, or fails and is tried again. */
static bool must_close(const struct df_request *req)
{
    return req->route && req->route->basic && req->s->config->elects;
}

static void add_headers(const struct exchange *x, struct MHD_Response *r)
{
    const struct df_response *res = &x->res;
    add_header(r, "Content-Type", res->content_type);
    add_header(r, "Cache-Control", res->etag[0] ? "no-cache" : "no-store");
    add_header(r, "X-Content-Type-Options", "nosniff");
    add_header(r, "ETag", res->etag);
    add_header(r, "Location", res->location);
    add_header(r, "Idempotency-Replayed", res->replayed ? "true" : NULL);
    add_header(r, "Connection", must_close(&x->req) ? "close" : NULL);
    if (res->status == 405)
        add_header(r, "Allow", res->allow);
    if (res->status == 503 || res->status == 429)
        add_header(r, "Retry-After", "1");
    if (res->status == 401)
        add_header(r, "WWW-Authenticate",
                   x->req.route && x->req.route->basic ? "Basic realm=\"dayfly\""
                                                       : "Bearer realm=\"dayfly\"");
}

/* Turns the failure into the answer. */
static void make_problem(struct exchange *x)
{
    x->res.status = df_problem_status(&x->err);
    x->res.content_type = DF_PROBLEM_TYPE;
    x->res.etag[0] = x->res.location[0] = '\0';
    df_buf_clear(&x->res.body);
    drop_other_bodies(&x->res);
    if (x->res.status >= 500 && x->res.status != 501)
        df_error("%s %s: %s", x->req.method, x->req.route ? x->req.route->pattern : "?",
                 x->err.message);
    struct df_err again = {0};
    if (df_problem_write(&x->err, x->res.problem_extra, &x->res.body, &again) < 0)
        df_buf_clear(&x->res.body);
}

static enum MHD_Result answer(struct exchange *x)
{
    if (failed(x))
        make_problem(x);
    struct MHD_Response *r = make_answer(x);
    if (!r)
        return MHD_NO;
    add_headers(x, r);
    enum MHD_Result queued = MHD_queue_response(x->req.connection, (unsigned)x->res.status, r);
    MHD_destroy_response(r);
    return queued;
}

/* ---- the request ---- */

static int open_body_file(struct exchange *x)
{
    x->req.body_path = df_strf("%s/upload-XXXXXX", df_blob_tmp_dir(x->req.s->blobs));
    if (!x->req.body_path)
        return df_fail_oom(&x->err);
    x->body_fd = mkostemp(x->req.body_path, O_CLOEXEC);
    if (x->body_fd >= 0)
        return 0;
    int saved = errno;
    free(x->req.body_path);
    x->req.body_path = NULL;
    return df_fail_errno(&x->err, saved, "create a file for the body");
}

static enum MHD_Result begin(struct exchange *x, const char *method)
{
    x->started = true;
    x->req.method = method;
    df_connections_busy(x->req.api->connections, watched(x), true);
    count(x, 1);
    uint64_t length = 0;
    if (!failed(x) && df_admit(&x->req, &x->res, &length, &x->err) == 0) {
        x->req.body.max = x->req.route->body_max;
        if (x->req.route->body == DF_BODY_FILE)
            (void)open_body_file(x);
    }
    if (!failed(x))
        return MHD_YES;
    df_trail(&x->req, &x->res, &x->err);
    /* A small body is read and thrown away, so that the connection can go on. */
    bool waits = df_request_header(&x->req, "Expect") != NULL;
    bool large = length != DF_BODY_UNKNOWN && length > DF_LIMIT_HTTP_REFUSED;
    return waits || large ? answer(x) : MHD_YES;
}

/* A body must come at a decent pace: 2 minutes, and then a rate that any line has. */
static bool too_slow(const struct exchange *x)
{
    int64_t seconds = (df_mono_us() - x->began_us) / 1000000;
    return seconds > DF_LIMIT_HTTP_IDLE_SECONDS + (int64_t)(x->taken / DF_LIMIT_HTTP_RATE);
}

static int keep(struct exchange *x, const char *bytes, size_t n)
{
    if (x->taken > x->req.route->body_max)
        return df_fail(&x->err, DF_ERR_LIMIT, "the body is too large; at most %zu bytes are taken",
                       x->req.route->body_max);
    if (x->body_fd >= 0)
        return df_fs_write_all(x->body_fd, bytes, n, &x->err);
    (void)df_buf_add(&x->req.body, bytes, n);
    return df_buf_check(&x->req.body, &x->err);
}

static enum MHD_Result take(struct exchange *x, const char *bytes, size_t n)
{
    x->taken += n;
    if (too_slow(x))
        return MHD_NO;
    if (failed(x))
        return x->taken > DF_LIMIT_HTTP_DISCARD ? MHD_NO : MHD_YES;
    if (keep(x, bytes, n) < 0)
        df_trail(&x->req, &x->res, &x->err);
    return MHD_YES;
}

/* The token of a step is checked where the step's hashes are; there it is plainly "denied". */
static void name_denial(struct exchange *x)
{
    if (x->req.route->access == DF_ACCESS_STEP && x->err.cls == DF_ERR_DENIED && !x->err.os_errno)
        (void)df_err_reason(&x->err, "Unauthorized");
}

/* True: the leader has answered, or nobody can. */
static bool perform_elsewhere(struct exchange *x)
{
    if (!df_forwards(&x->req))
        return false;
    if (df_forward(x->req.api->forwarder, &x->req, &x->res, &x->err) == 0) {
        x->err = (struct df_err){0};
        return true;
    }
    x->alone = x->req.route->any_replica && df_streq(x->err.reason, "NoLeader");
    x->err = x->alone ? (struct df_err){0} : x->err;
    return !x->alone;
}

/* A follower may not have heard of it yet: only a leader knows that something is not there. */
static void doubt_absence(struct exchange *x)
{
    if (x->alone && x->err.cls == DF_ERR_NOT_FOUND)
        (void)df_fail_no_leader(&x->err, "no replica leads that knows of it");
}

static void perform(struct exchange *x)
{
    if (x->body_fd >= 0)
        (void)close(DF_TAKE_FD(x->body_fd));
    if (perform_elsewhere(x))
        return;
    if (df_admit_body(&x->req, &x->err) == 0) {
        if (x->req.route->handler(&x->req, &x->res, &x->err) == 0)
            x->err = (struct df_err){0}; /* what it got over is no failure */
        name_denial(x);
        doubt_absence(x);
    }
    df_trail(&x->req, &x->res, &x->err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
enum MHD_Result df_exchange_step(void *api, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *bytes,
                                 size_t *n, void **con_cls)
{
    (void)api;
    (void)connection;
    (void)url;
    (void)version;
    struct exchange *x = *con_cls;
    if (!x)
        return MHD_NO;
    if (!x->started)
        return begin(x, method);
    if (*n) {
        size_t had = *n;
        *n = 0;
        return take(x, bytes, had);
    }
    if (!failed(x))
        perform(x);
    return answer(x);
}
