/*
 * request.c - a request from its first byte to the end of its response, as libmicrohttpd calls it.
 * Read from the bottom: df_mhd_step() validates the head (validate.c), receives the body, forwards
 * the request to the leader (forward.c) or calls the route's handler, and sends the response.
 */
#include "spawner/http/mhd.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "spawner/http/audit.h"
#include "spawner/http/forward.h"
#include "spawner/http/framing.h"
#include "spawner/http/problem.h"
#include "spawner/http/rights.h"
#include "spawner/http/server.h"
#include "spawner/http/validate.h"

/* A streamed response is sent in pieces; the largest is an escaped document or log frame. */
#define OUTGOING_MAX (16 * DF_MIB)

struct transaction {
    struct df_request req;
    struct df_response res;
    struct df_err err; /* the failure; cls NONE: none so far */
    bool started;      /* the head was validated */
    bool in_flight;    /* counted in df_api.in_flight */
    bool measured;     /* counted in the metrics */
    bool leaderless;   /* a read without a leader, served from this replica's cache */
    bool closes;       /* the connection ends with this response, which is sent at once */
    int64_t began_us;
    uint64_t received; /* bytes of the body so far */
    int body_fd;
    struct df_buf outgoing; /* the current piece of a stream */
    size_t sent;            /* how much of it was sent */
    bool stream_ended;
};

static bool failed(const struct transaction *t)
{
    return t->err.cls != DF_ERR_NONE;
}

/* ---- lifecycle ---- */

void *df_mhd_new(void *api, const char *uri, struct MHD_Connection *connection)
{
    struct transaction *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->req.api = api;
    t->req.s = t->req.api->s;
    t->req.connection = connection;
    t->req.body = DF_BUF_INIT(0);
    t->res.body = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    t->res.fd = -1;
    t->res.status = 200;
    t->body_fd = -1;
    t->outgoing = DF_BUF_INIT(OUTGOING_MAX);
    t->began_us = df_mono_us();
    (void)snprintf(t->req.caller.name, sizeof(t->req.caller.name), "anonymous");
    t->req.uri = strdup(uri ? uri : "");
    if (!t->req.uri)
        (void)df_fail_oom(&t->err);
    else if (df_target_parse(t->req.uri, &t->req.target, &t->err) < 0)
        t->req.target = (struct df_target){0};
    return t;
}

static void drop_other_bodies(struct df_response *res)
{
    if (res->stream)
        res->stream->free(res->stream);
    res->stream = NULL;
    res->fixed = NULL;
    if (res->fd >= 0)
        (void)close(DF_TAKE_FD(res->fd));
}

static void free_transaction(struct transaction *t)
{
    df_target_free(&t->req.target);
    free(t->req.uri);
    df_credentials_wipe(&t->req.credentials);
    df_caller_free(&t->req.caller);
    df_buf_wipe(&t->req.body);
    df_json_wipe(t->req.json);
    if (t->req.body_path)
        (void)unlink(t->req.body_path);
    free(t->req.body_path);
    if (t->body_fd >= 0)
        (void)close(t->body_fd);
    if (t->res.secret)
        df_buf_wipe(&t->res.body);
    df_buf_free(&t->res.body);
    drop_other_bodies(&t->res);
    cJSON_Delete(t->res.problem_extra);
    free(t->res.audit_detail);
    df_buf_free(&t->outgoing);
    free(t);
}

static void count_in_flight(struct transaction *t, int by)
{
    struct df_api *a = t->req.api;
    (void)pthread_mutex_lock(&a->lock);
    a->in_flight = by > 0 ? a->in_flight + 1 : a->in_flight - 1;
    if (a->in_flight == 0)
        (void)pthread_cond_broadcast(&a->quiet);
    (void)pthread_mutex_unlock(&a->lock);
    t->in_flight = by > 0;
}

static void record_metrics(struct transaction *t)
{
    const struct df_api *a = t->req.api;
    t->measured = true;
    const char *route = t->req.route ? t->req.route->pattern : "none";
    double seconds = (double)(df_mono_us() - t->began_us) / 1e6;
    char labels[160];
    /* The caller chooses the name of an unknown method, so it must not create a time series. */
    (void)snprintf(labels, sizeof(labels), "%s,%s,%d", t->req.route ? t->req.method : "other",
                   route, t->res.status);
    df_metric_add(a->requests, labels, 1);
    if (!t->res.stream)
        df_metric_observe(a->seconds, route, seconds);
    df_debug("%s %s: %d in %.1f ms, for %s", t->req.route ? t->req.method : "other", route,
             t->res.status, seconds * 1e3, t->req.caller.name);
}

void df_mhd_end(void *api, struct MHD_Connection *connection, void **con_cls,
                enum MHD_RequestTerminationCode how)
{
    (void)connection;
    (void)how;
    struct transaction *t = *con_cls;
    *con_cls = NULL;
    if (!t)
        return;
    df_connections_wait(((struct df_api *)api)->connections, df_request_connection(&t->req));
    df_intake_renew(df_connection_intake(df_request_connection(&t->req)));
    if (t->started && !t->measured)
        record_metrics(t); /* the connection was lost before a response */
    if (t->in_flight)
        count_in_flight(t, -1);
    free_transaction(t);
}

/* ---- the response ---- */

/* While the peer has something to read, its time is limited; while it waits for the next piece,
 * not. */
static void limit_peer(const struct transaction *t, int64_t seconds)
{
    df_connections_limit(t->req.api->connections, df_request_connection(&t->req), seconds);
}

static int next_piece(struct transaction *t)
{
    limit_peer(t, -1);
    int more = t->res.stream->next(t->res.stream, &t->outgoing);
    limit_peer(t, DF_LIMIT_HTTP_ANSWER_SECONDS + (int64_t)(t->outgoing.len / DF_LIMIT_HTTP_RATE));
    return more;
}

static ssize_t read_stream(void *cls, uint64_t position, char *to, size_t max)
{
    (void)position;
    struct transaction *t = cls;
    while (t->sent == t->outgoing.len) {
        if (t->stream_ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        df_buf_free(&t->outgoing); /* a stream may be idle for hours: hold no memory */
        t->sent = 0;
        int more = next_piece(t);
        if (more < 0 || t->outgoing.failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        t->stream_ended = more == 0;
    }
    size_t left = t->outgoing.len - t->sent, n = left < max ? left : max;
    memcpy(to, t->outgoing.data + t->sent, n);
    t->sent += n;
    return (ssize_t)n;
}

static struct MHD_Response *create_response(struct transaction *t)
{
    if (t->res.stream)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * DF_KIB, read_stream, t,
                                                 NULL);
    if (t->res.fd >= 0) {
        int fd = DF_TAKE_FD(t->res.fd);
        struct MHD_Response *r = MHD_create_response_from_fd64((uint64_t)t->res.fd_size, fd);
        if (!r)
            (void)close(fd);
        return r;
    }
    if (t->res.fixed)
        return MHD_create_response_from_buffer_static(t->res.fixed_len, t->res.fixed);
    /* libmicrohttpd sends from this buffer without a copy. It calls df_mhd_end() after the last
     * byte. */
    return MHD_create_response_from_buffer(t->res.body.len, t->res.body.data,
                                           MHD_RESPMEM_PERSISTENT);
}

static void add_response_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (!df_str_empty(value))
        (void)MHD_add_response_header(r, name, value);
}

/* tofu waits without a limit on a kept connection to a frozen replica. With a new connection it
 * reaches a replica that is ready, or fails and tries again. */
static bool is_of_tofu(const struct df_request *req)
{
    return req->route && req->route->basic && !df_is_forwarded(req);
}

static bool must_close(const struct transaction *t)
{
    return t->closes || (t->req.s->config->elects && is_of_tofu(&t->req));
}

static void add_headers(const struct transaction *t, struct MHD_Response *r)
{
    const struct df_response *res = &t->res;
    add_response_header(r, "Content-Type", res->content_type);
    add_response_header(r, "Cache-Control", res->etag[0] ? "no-cache" : "no-store");
    add_response_header(r, "X-Content-Type-Options", "nosniff");
    add_response_header(r, "ETag", res->etag);
    add_response_header(r, "Location", res->location);
    add_response_header(r, "Idempotency-Replayed", res->replayed ? "true" : NULL);
    add_response_header(r, "Connection", must_close(t) ? "close" : NULL);
    if (res->status == 405)
        add_response_header(r, "Allow", res->allow);
    if (res->status == 503 || res->status == 429)
        add_response_header(r, "Retry-After", "1");
    if (res->status == 401)
        add_response_header(r, "WWW-Authenticate",
                            t->req.route && t->req.route->basic ? "Basic realm=\"dayfly\""
                                                                : "Bearer realm=\"dayfly\"");
}

/* The log's gate for a failure that every request meets while it lasts (no leader, a bucket that
 * refuses, a full disk). That it begins is logged elsewhere, except for a full disk. NULL: another
 * one. */
static struct df_log_gate *gate_of(struct transaction *t)
{
    struct df_api *a = t->req.api;
    return df_streq(t->err.reason, "NoLeader")         ? &a->leaderless
           : df_streq(t->err.reason, "StorageRefused") ? &a->storeless
           : t->res.status == 507                      ? &a->full
                                                       : NULL;
}

static void log_failure(struct transaction *t)
{
    struct df_log_gate *gate = gate_of(t);
    const char *route = t->req.route ? t->req.route->pattern : "?";
    unsigned skipped = 0;
    /* usual: for some milliseconds, and after a change of the leader */
    if (df_streq(t->err.reason, "NotDecidedYet") || df_streq(t->err.reason, "NotListedYet"))
        df_debug("%s %s: %s", t->req.method, route, t->err.message);
    else if (df_streq(t->err.reason, "NoCapacity")) /* the sender asks again */
        df_info("%s %s: %s", t->req.method, route, t->err.message);
    else if (!gate)
        df_error("%s %s: %s", t->req.method, route, t->err.message);
    else if (df_log_gate_passes(gate, df_mono_us(), &skipped))
        df_warn("%s %s: %s (%u such requests before it are not logged)", t->req.method, route,
                t->err.message, skipped);
}

/* Makes the failure the response. */
static void make_problem(struct transaction *t)
{
    t->res.status = df_problem_status(&t->err);
    t->res.content_type = DF_PROBLEM_TYPE;
    t->res.etag[0] = t->res.location[0] = '\0';
    df_buf_clear(&t->res.body);
    drop_other_bodies(&t->res);
    if (t->res.status >= 500)
        log_failure(t);
    struct df_err again = {0};
    if (df_problem_write(&t->err, t->res.problem_extra, &t->res.body, &again) < 0)
        df_buf_clear(&t->res.body);
}

static int64_t answer_size(const struct transaction *t)
{
    return t->res.fd_size > 0 ? t->res.fd_size : (int64_t)(t->res.fixed_len + t->res.body.len);
}

static enum MHD_Result send_response(struct transaction *t)
{
    if (failed(t))
        make_problem(t);
    struct MHD_Response *r = create_response(t);
    if (!r)
        return MHD_NO;
    add_headers(t, r);
    limit_peer(t, DF_LIMIT_HTTP_ANSWER_SECONDS + answer_size(t) / (int64_t)DF_LIMIT_HTTP_RATE);
    record_metrics(t); /* before the client sees the response */
    enum MHD_Result queued = MHD_queue_response(t->req.connection, (unsigned)t->res.status, r);
    MHD_destroy_response(r);
    return queued;
}

/* ---- the request ---- */

static int open_body_file(struct transaction *t)
{
    t->req.body_path = df_strf("%s/upload-XXXXXX", df_blob_tmp_dir(t->req.s->blobs));
    if (!t->req.body_path)
        return df_fail_oom(&t->err);
    t->body_fd = mkostemp(t->req.body_path, O_CLOEXEC);
    if (t->body_fd >= 0)
        return 0;
    int saved = errno;
    free(t->req.body_path);
    t->req.body_path = NULL;
    return df_fail_errno(&t->err, saved, "create a file for the body");
}

static enum df_share share_of(const struct df_request *req)
{
    if (req->route->access == DF_ACCESS_STEP)
        return DF_SHARE_STEPS;
    return req->caller.role == DF_ROLE_ADMIN ? DF_SHARE_ADMINS : DF_SHARE_CALLERS;
}

static bool has_foreign_body(const struct df_request *req)
{
    return req->route->access == DF_ACCESS_ANYONE && req->route->body != DF_BODY_NONE;
}

static int find_place(struct transaction *t)
{
    const struct df_request *req = &t->req;
    struct df_connections *all = req->api->connections;
    struct df_connection *one = df_request_connection(&t->req);
    if (req->route->access == DF_ACCESS_ANYONE)
        return has_foreign_body(req) ? df_connections_receive(all, one, &t->err) : 0;
    const char *who = req->route->access == DF_ACCESS_STEP ? req->params[0] : req->caller.name;
    return df_connections_admit(all, one, share_of(req), who, &t->err);
}

/* The request has shown who sends it: counts its connection among theirs. */
static int admit(struct transaction *t)
{
    int result = find_place(t);
    t->closes = t->closes || result < 0;
    return result;
}

static enum MHD_Result begin_request(struct transaction *t, const char *method)
{
    t->started = true;
    t->req.method = method;
    count_in_flight(t, 1);
    uint64_t length = 0;
    struct df_err why = {0};
    t->closes = df_framing_check(&t->req, &length, &why) < 0;
    if (t->closes)
        t->err = why; /* also instead of a bad target: it closes the connection */
    if (!failed(t) && df_request_validate(&t->req, &t->res, length, &t->err) == 0 &&
        admit(t) == 0) {
        bool known = t->req.route->access != DF_ACCESS_ANYONE;
        limit_peer(t, known ? -1 : DF_LIMIT_HTTP_HEAD_SECONDS);
        t->req.body.max = t->req.route->body_max;
        if (t->req.route->body == DF_BODY_FILE)
            (void)open_body_file(t);
    }
    if (!failed(t))
        return MHD_YES;
    limit_peer(t, DF_LIMIT_HTTP_HEAD_SECONDS);
    df_audit_request(&t->req, &t->res, &t->err);
    /* Read and discard a small body, so that the connection stays usable. */
    bool waits = df_request_header(&t->req, "Expect") != NULL;
    bool large = length != DF_BODY_UNKNOWN && length > DF_LIMIT_HTTP_REFUSED;
    return t->closes || waits || large ? send_response(t) : MHD_YES;
}

/* True if the client takes longer than DF_LIMIT_HTTP_IDLE_SECONDS plus the time that its body needs
 * at DF_LIMIT_HTTP_RATE. */
static bool is_too_slow(const struct transaction *t)
{
    int64_t seconds = (df_mono_us() - t->began_us) / 1000000;
    return seconds > DF_LIMIT_HTTP_IDLE_SECONDS + (int64_t)(t->received / DF_LIMIT_HTTP_RATE);
}

static int store_body(struct transaction *t, const char *bytes, size_t n)
{
    if (t->received > t->req.route->body_max)
        return df_fail(&t->err, DF_ERR_LIMIT, "the body is too large; at most %zu bytes are taken",
                       t->req.route->body_max);
    if (t->body_fd >= 0)
        return df_fs_write_all(t->body_fd, bytes, n, &t->err);
    (void)df_buf_add(&t->req.body, bytes, n);
    return df_buf_check(&t->req.body, &t->err);
}

static enum MHD_Result receive_body(struct transaction *t, const char *bytes, size_t n)
{
    t->received += n;
    if (is_too_slow(t))
        return MHD_NO;
    if (failed(t))
        return t->received > DF_LIMIT_HTTP_DISCARD ? MHD_NO : MHD_YES;
    if (store_body(t, bytes, n) < 0)
        df_audit_request(&t->req, &t->res, &t->err);
    return MHD_YES;
}

/* steps/ checks the step's token and fails with DENIED without a reason. The reason Unauthorized
 * makes this a 401. */
static void set_denied_reason(struct transaction *t)
{
    if (t->req.route->access == DF_ACCESS_STEP && t->err.cls == DF_ERR_DENIED && !t->err.os_errno)
        (void)df_err_reason(&t->err, "Unauthorized");
}

/* True if the response is complete: the leader's, or a failure. False if this replica handles the
 * request. */
static bool forward_to_leader(struct transaction *t)
{
    if (!df_forwards(&t->req))
        return false;
    if (df_forward(t->req.api->forwarder, &t->req, &t->res, &t->err) == 0) {
        t->err = (struct df_err){0};
        return true;
    }
    t->leaderless = t->req.route->any_replica && df_streq(t->err.reason, "NoLeader");
    t->err = t->leaderless ? (struct df_err){0} : t->err;
    return !t->leaderless;
}

/* A replica that does not lead may not know a new document yet. Only the leader can respond with
 * 404; the others respond with 503. */
static void replace_not_found(struct transaction *t)
{
    if (t->leaderless && t->err.cls == DF_ERR_NOT_FOUND)
        (void)df_fail_no_leader(&t->err, "not found on this replica, and no replica leads");
}

static void perform(struct transaction *t)
{
    int64_t began_us = df_real_us();
    if (t->body_fd >= 0)
        (void)close(DF_TAKE_FD(t->body_fd));
    if (forward_to_leader(t))
        return;
    if (df_rights_check(&t->req, &t->err) == 0 && df_request_parse_body(&t->req, &t->err) == 0) {
        if (t->req.route->handler(&t->req, &t->res, &t->err) == 0)
            t->err = (struct df_err){0}; /* an error that the handler recovered from */
        set_denied_reason(t);
        if (t->req.route->after)
            t->req.route->after(&t->req, began_us, failed(t) ? &t->err : NULL);
    }
    replace_not_found(t);
    df_audit_request(&t->req, &t->res, &t->err);
}

/* A tree takes forty times the memory of its text, so there is one at a time, and none while the
 * stranger reads the answer. */
static void perform_foreign(struct transaction *t)
{
    struct df_api *a = t->req.api;
    df_connections_answer(a->connections, df_request_connection(&t->req), true);
    (void)pthread_mutex_lock(&a->foreign);
    perform(t);
    cJSON_Delete(DF_TAKE(t->req.json));
    (void)pthread_mutex_unlock(&a->foreign);
    df_connections_answer(a->connections, df_request_connection(&t->req), false);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
enum MHD_Result df_mhd_step(void *api, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *bytes, size_t *n,
                            void **con_cls)
{
    (void)api;
    (void)connection;
    (void)url;
    (void)version;
    struct transaction *t = *con_cls;
    if (!t)
        return MHD_NO;
    df_intake_renew(df_connection_intake(df_request_connection(&t->req)));
    if (!t->started)
        return begin_request(t, method);
    if (*n) {
        size_t had = *n;
        *n = 0;
        return receive_body(t, bytes, had);
    }
    if (!failed(t))
        (has_foreign_body(&t->req) ? perform_foreign : perform)(t);
    return send_response(t);
}
