/*
 * answering_server.h - a real HTTP server that answers as the test says, and keeps what it was
 * asked.
 *
 * The test gives the answers before it asks, and looks afterwards. The lock is for connections
 * that end without an answer.
 */
#ifndef DF_TEST_ANSWERING_SERVER_H
#define DF_TEST_ANSWERING_SERVER_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>

#include "common/base/buf.h"

enum { ANSWERS = 16 };

/* What was asked; owned. query: "a=1&b=2", decoded. */
struct asked {
    char *method, *url, *query, *type, *token, *body;
};

struct answer {
    unsigned status; /* 0: the connection breaks; 301: the bucket is in eu-west-3; 302: to /moved */
    const char *body;
};

struct answering_server {
    struct MHD_Daemon *daemon;
    char url[64];
    struct answer answers[ANSWERS]; /* in turn; the last one stays */
    unsigned n_answers, n_asked;
    pthread_mutex_t lock; /* between connections */
    struct asked asked[ANSWERS];
};

static inline char *answering_copy(const char *s)
{
    return strdup(s ? s : "");
}

static inline enum MHD_Result answering_say(struct MHD_Connection *c, unsigned status,
                                            const char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_MUST_COPY);
    if (status == 302)
        (void)MHD_add_response_header(r, "Location", "/moved");
    if (status == 301)
        (void)MHD_add_response_header(r, "x-amz-bucket-region", "eu-west-3");
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static inline enum MHD_Result answering_parameter(void *cls, enum MHD_ValueKind kind,
                                                  const char *name, const char *value)
{
    struct df_buf *query = cls;
    (void)kind;
    (void)df_buf_addf(query, "%s%s=%s", query->len ? "&" : "", name, value ? value : "");
    return MHD_YES;
}

static inline enum MHD_Result answering_handle(void *cls, struct MHD_Connection *c, const char *url,
                                               const char *method, const char *version,
                                               const char *upload, size_t *upload_size, void **con)
{
    struct answering_server *s = cls;
    struct df_buf *body = *con;
    (void)version;
    if (!body) {
        *con = body = calloc(1, sizeof(*body));
        *body = DF_BUF_INIT(DF_MIB);
        return MHD_YES;
    }
    if (*upload_size) {
        (void)df_buf_add(body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    const char *include = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "include");
    const char *type = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type");
    const char *token = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    DF_BUF struct df_buf query = DF_BUF_INIT(DF_LIMIT_URL);
    (void)MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, answering_parameter, &query);
    (void)pthread_mutex_lock(&s->lock);
    unsigned i = s->n_asked < s->n_answers ? s->n_asked : s->n_answers - 1;
    if (s->n_asked == ANSWERS || !s->n_answers)
        abort();
    s->asked[s->n_asked++] =
        (struct asked){answering_copy(method),
                       df_strf("%s%s%s", url, include ? "?include=" : "", include ? include : ""),
                       answering_copy(df_buf_str(&query)),
                       answering_copy(type),
                       answering_copy(token),
                       answering_copy(df_buf_str(body))};
    const struct answer a = s->answers[i];
    (void)pthread_mutex_unlock(&s->lock);
    return a.status ? answering_say(c, a.status, a.body) : MHD_NO;
}

static inline void answering_done(void *cls, struct MHD_Connection *c, void **con,
                                  enum MHD_RequestTerminationCode code)
{
    (void)cls, (void)c, (void)code;
    df_buf_free(*con);
    free(*con);
}

/* Listens on a free port of the loopback, at s->url. */
static inline void answering_open(struct answering_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL,
                         NULL, answering_handle, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
                         MHD_OPTION_NOTIFY_COMPLETED, answering_done, NULL, MHD_OPTION_END);
    if (!s->daemon)
        abort();
    unsigned port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    (void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", port);
}

static inline void will_answer(struct answering_server *s, unsigned status, const char *body)
{
    (void)pthread_mutex_lock(&s->lock);
    s->answers[s->n_answers++] = (struct answer){status, body};
    (void)pthread_mutex_unlock(&s->lock);
}

/* What was asked and shall be answered so far. */
static inline void answering_forget(struct answering_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_asked; i++) {
        free(s->asked[i].method);
        free(s->asked[i].url);
        free(s->asked[i].query);
        free(s->asked[i].type);
        free(s->asked[i].token);
        free(s->asked[i].body);
    }
    s->n_asked = s->n_answers = 0;
    (void)pthread_mutex_unlock(&s->lock);
}

/* How often it was asked, also by connections that ended without an answer. */
static inline unsigned answering_count(struct answering_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    unsigned n = s->n_asked;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

static inline void answering_close(struct answering_server *s)
{
    MHD_stop_daemon(s->daemon);
    answering_forget(s);
}

#endif
