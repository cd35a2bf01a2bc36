/*
 * step_server.h - a spawner for tests: a real HTTP server that plays docs/step-protocol.md for one
 * step and for the standby runner that may claim it, and can be told to lose answers, drop
 * requests, stall, refuse, forget and move.
 *
 * Everything behind the lock; tests read and set it between server_lock() and server_unlock().
 */
#ifndef DF_TEST_STEP_SERVER_H
#define DF_TEST_STEP_SERVER_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>

#include "common/base/limits.h"
#include "common/json/json.h"

enum { SERVER_LOG, SERVER_EVENTS };

struct step_server {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct MHD_Daemon *daemon;
    uint16_t port;

    const char *document; /* what a claim gets; NULL: only what it must have */
    char claim_id[64];
    unsigned claims;           /* requests, repeated ones included */
    unsigned asked;            /* requests of the standby runner */
    unsigned asked_to_prepare; /* with `prepares` */
    struct df_buf streams[2];
    uint64_t ends[2];
    char (*expected)(uint64_t at); /* set: the bytes of the log are compared, not kept */
    uint64_t wrong;
    struct df_buf progress; /* one body a line */
    struct df_buf artifact;
    struct df_buf result;
    unsigned results;
    struct df_buf plan; /* what GET /artifacts/plan gives */

    /* Faults. */
    unsigned requests;
    unsigned lose_every; /* every so many requests: done, but the answer is lost */
    unsigned drop_every; /* every so many requests: the connection breaks before anything is done */
    const char *refuse;  /* paths that begin so ... */
    unsigned refuse_times; /* ... are answered so many times ... */
    int refuse_status;     /* ... with this status ... */
    const char *refuse_body;
    unsigned short_plans; /* so many downloads break off in the middle */
    bool stalled;         /* requests wait */
    bool over;            /* 410 */
};

struct server_request {
    struct df_buf body;
};

static inline void server_lock(struct step_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
}

static inline void server_unlock(struct step_server *s)
{
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Waits, under the lock, until the condition holds. */
#define SERVER_WAIT(s, condition)                                                                  \
    do {                                                                                           \
        server_lock(s);                                                                            \
        while (!(condition))                                                                       \
            (void)pthread_cond_wait(&(s)->changed, &(s)->lock);                                    \
        server_unlock(s);                                                                          \
    } while (0)

static inline enum MHD_Result server_answer(struct MHD_Connection *c, unsigned status,
                                            const char *bytes, size_t n)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    (void)MHD_add_response_header(r, "Content-Type",
                                  status >= 400 ? "application/problem+json" : "application/json");
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static inline enum MHD_Result server_say(struct MHD_Connection *c, unsigned status,
                                         const char *text)
{
    return server_answer(c, status, text, strlen(text));
}

static inline void server_take_bytes(struct step_server *s, int stream, uint64_t from,
                                     const char *bytes, size_t n)
{
    uint64_t known = s->ends[stream] - from;
    if (known >= n)
        return;
    for (size_t i = known; i < n && s->expected && stream == SERVER_LOG; i++)
        s->wrong += bytes[i] != s->expected(from + i);
    if (!s->expected || stream != SERVER_LOG)
        (void)df_buf_add(&s->streams[stream], bytes + known, n - known);
    s->ends[stream] = from + n;
}

static inline enum MHD_Result server_stream(struct step_server *s, struct MHD_Connection *c,
                                            int stream, const struct df_buf *body)
{
    const char *text = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "offset");
    uint64_t from = text ? strtoull(text, NULL, 10) : 0;
    char answer[64];
    bool gap = from > s->ends[stream];
    if (!gap)
        server_take_bytes(s, stream, from, body->data, body->len);
    (void)snprintf(answer, sizeof answer, "{\"type\":\"Gap\",\"offset\":%llu}",
                   (unsigned long long)s->ends[stream]);
    return server_say(c, gap ? 409 : 200, answer);
}

static inline enum MHD_Result server_claim(struct step_server *s, struct MHD_Connection *c,
                                           const struct df_buf *body)
{
    DF_JSON cJSON *claim = NULL;
    if (df_json_parse(df_buf_str(body), body->len, &claim, NULL) < 0)
        return server_say(c, 400, "{\"type\":\"InvalidStep\"}");
    const char *id = df_json_str(claim, "claimId");
    s->claims++;
    if (*s->claim_id && !df_streq(s->claim_id, id))
        return server_say(c, 409, "{\"type\":\"AlreadyClaimed\"}");
    (void)snprintf(s->claim_id, sizeof s->claim_id, "%s", id ? id : "");
    static const char least[] = "{\"uid\":\"u-1\",\"name\":\"net-1-plan\",\"stepToken\":\"step\"}";
    return server_say(c, 200, s->document ? s->document : least);
}

static inline enum MHD_Result server_plan(struct step_server *s, struct MHD_Connection *c)
{
    if (!s->short_plans)
        return server_answer(c, 200, df_buf_str(&s->plan), s->plan.len);
    s->short_plans--;
    /* Says the whole length, sends half, closes. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    char head[128];
    int n =
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", s->plan.len);
    (void)send(info->connect_fd, head, (size_t)n, MSG_NOSIGNAL);
    (void)send(info->connect_fd, s->plan.data, s->plan.len / 2, MSG_NOSIGNAL);
    return MHD_NO;
}

static inline enum MHD_Result server_result(struct step_server *s, struct MHD_Connection *c,
                                            const struct df_buf *body)
{
    if (!s->results++)
        (void)df_buf_add(&s->result, body->data, body->len);
    else if (body->len != s->result.len || memcmp(body->data, s->result.data, body->len) != 0)
        return server_say(c, 410, "{\"type\":\"StepOver\"}");
    return server_say(c, 200, "{}");
}

static inline enum MHD_Result server_route(struct step_server *s, struct MHD_Connection *c,
                                           const char *method, const char *path,
                                           const struct df_buf *body)
{
    bool claim = df_streq(path, "/claim");
    const char *auth = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (!df_streq(auth, claim ? "Bearer claim" : "Bearer step"))
        return server_say(c, 401, "{\"type\":\"Unauthorized\"}");
    if (s->refuse_times && df_starts_with(path, s->refuse)) {
        s->refuse_times--;
        return server_say(c, (unsigned)s->refuse_status, s->refuse_body ? s->refuse_body : "{}");
    }
    if (s->over || (s->results && !df_streq(path, "/result")))
        return server_say(c, 410, "{\"type\":\"StepOver\"}");
    if (claim)
        return server_claim(s, c, body);
    if (df_streq(path, "/streams/log") && df_streq(method, "GET"))
        return server_say(c, 200, "{\"offset\":0}");
    if (df_streq(path, "/streams/log"))
        return server_stream(s, c, SERVER_LOG, body);
    if (df_streq(path, "/streams/events"))
        return server_stream(s, c, SERVER_EVENTS, body);
    if (df_streq(path, "/progress")) {
        (void)df_buf_addf(&s->progress, "%s\n", df_buf_str(body));
        return server_say(c, 204, "");
    }
    if (df_streq(path, "/artifacts/plan") && df_streq(method, "GET"))
        return server_plan(s, c);
    if (df_starts_with(path, "/artifacts/")) {
        df_buf_clear(&s->artifact);
        (void)df_buf_add(&s->artifact, df_buf_str(body), body->len);
        return server_say(c, 201, "{}");
    }
    if (df_streq(path, "/result"))
        return server_result(s, c, body);
    return server_say(c, 404, "{\"type\":\"NotFound\"}");
}

static inline enum MHD_Result server_handle(void *cls, struct MHD_Connection *c, const char *url,
                                            const char *method, const char *version,
                                            const char *upload, size_t *upload_size, void **con)
{
    (void)version;
    struct step_server *s = cls;
    struct server_request *r = *con;
    if (!r) {
        *con = r = calloc(1, sizeof *r);
        r->body = DF_BUF_INIT(64 * DF_MIB);
        return MHD_YES;
    }
    if (*upload_size) {
        (void)df_buf_add(&r->body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    static const char step[] = "/v1/steps/u-1", standby[] = "/v1/runners/standby-1";
    bool asks = df_streq(url, "/v1/runners/standby-1/claim");
    if (!asks && !df_starts_with(url, step))
        return server_say(c, 404, "{\"type\":\"NotFound\"}");
    server_lock(s);
    while (s->stalled)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    s->requests++;
    s->asked += asks;
    s->asked_to_prepare += strstr(df_buf_str(&r->body), "\"prepares\":true") != NULL;
    bool lose = s->lose_every && s->requests % s->lose_every == 0;
    enum MHD_Result result = MHD_NO;
    if (!s->drop_every || s->requests % s->drop_every != 0)
        result = server_route(s, c, method, url + strlen(asks ? standby : step), &r->body);
    server_unlock(s);
    return lose ? MHD_NO : result;
}

static inline void server_done(void *cls, struct MHD_Connection *c, void **con,
                               enum MHD_RequestTerminationCode code)
{
    (void)cls, (void)c, (void)code;
    struct server_request *r = *con;
    if (r)
        df_buf_free(&r->body);
    free(r);
}

/* Listens on a free port of the loopback; may be called again after server_close(). */
static inline void server_open(struct step_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL,
                         NULL, server_handle, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
                         MHD_OPTION_NOTIFY_COMPLETED, server_done, NULL, MHD_OPTION_END);
    if (!s->daemon)
        abort();
    s->port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* Breaks all connections. What was stored stays. */
static inline void server_close(struct step_server *s)
{
    server_lock(s);
    s->stalled = false;
    server_unlock(s);
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}

static inline void server_start(struct step_server *s)
{
    *s = (struct step_server){.streams = {DF_BUF_INIT(64 * DF_MIB), DF_BUF_INIT(64 * DF_MIB)},
                              .progress = DF_BUF_INIT(DF_MIB),
                              .artifact = DF_BUF_INIT(64 * DF_MIB),
                              .result = DF_BUF_INIT(DF_MIB),
                              .plan = DF_BUF_INIT(64 * DF_MIB)};
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    server_open(s);
}

static inline void server_end(struct step_server *s)
{
    if (s->daemon)
        server_close(s);
    df_buf_free(&s->streams[0]);
    df_buf_free(&s->streams[1]);
    df_buf_free(&s->progress);
    df_buf_free(&s->artifact);
    df_buf_free(&s->result);
    df_buf_free(&s->plan);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
}

#endif
