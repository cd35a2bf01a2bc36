/*
 * kube_server.h - an API server for tests: real sockets, answers by a function of the test, streams
 * that are cut at any byte. Include behind cmocka.h.
 *
 * Everything behind the lock; the handler is called with it held.
 */
#ifndef DF_TEST_KUBE_SERVER_H
#define DF_TEST_KUBE_SERVER_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "common/kube/kube.h"

struct kube_request {
    const char *method, *target; /* the target with its query */
    const char *head, *body;     /* the head with its lines; the body as text */
};

struct kube_reply {
    struct df_buf bytes; /* the whole answer as it travels */
    size_t cut;          /* the connection ends behind so many of them */
    bool hold;           /* after them nothing more comes, until the server ends */
    bool close;          /* after them the connection ends */
};

enum { KUBE_CONNECTIONS = 512 };

struct kube_server {
    void (*handle)(struct kube_server *s, const struct kube_request *r, struct kube_reply *a);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int listener;
    int quit[2]; /* the reading end becomes ready when the server ends */
    uint16_t port;
    pthread_t thread;
    pthread_t threads[KUBE_CONNECTIONS];
    size_t connections;
    struct df_buf seen; /* "GET /api/...\n" of every request */
    unsigned lists, watches;
};

struct kube_connection {
    struct kube_server *server;
    int fd;
};

static inline void kube_say(struct kube_reply *a, int status, const char *headers, const char *body)
{
    (void)df_buf_addf(&a->bytes, "HTTP/1.1 %d Said\r\n%sContent-Type: application/json\r\n", status,
                      headers);
    (void)df_buf_addf(&a->bytes, "Content-Length: %zu\r\n\r\n", strlen(body));
    (void)df_buf_adds(&a->bytes, body);
}

static inline void kube_status(struct kube_reply *a, int code, const char *reason,
                               const char *message)
{
    DF_FREE char *body =
        df_strf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
                message, reason, code);
    kube_say(a, code, "", body);
}

static inline void kube_stream(struct kube_reply *a)
{
    (void)df_buf_adds(&a->bytes, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n");
}

/* One line of a stream, in a chunk of its own. */
static inline void kube_line(struct kube_reply *a, const char *line)
{
    (void)df_buf_addf(&a->bytes, "%zx\r\n%s\n\r\n", strlen(line) + 1, line);
}

static inline void kube_stream_end(struct kube_reply *a)
{
    (void)df_buf_adds(&a->bytes, "0\r\n\r\n");
}

/* The number behind "key=" in a target, or -1. */
static inline long kube_parameter(const char *target, const char *key)
{
    DF_FREE char *with = df_strf("%s=", key);
    for (const char *p = strstr(target, with); p; p = strstr(p + 1, with))
        if (p[-1] == '?' || p[-1] == '&')
            return strtol(p + strlen(with), NULL, 10);
    return -1;
}

static inline size_t kube_body_length(const char *head)
{
    const char *p = strstr(head, "Content-Length: ");
    return p ? strtoul(p + strlen("Content-Length: "), NULL, 10) : 0;
}

/* Reads one request. False when the client closed or the server ends. */
static inline bool kube_read(struct kube_connection *c, struct df_buf *b)
{
    for (;;) {
        const char *end = b->data ? strstr(b->data, "\r\n\r\n") : NULL;
        if (end && b->len >= (size_t)(end + 4 - b->data) + kube_body_length(b->data))
            return true;
        struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
                               {.fd = c->server->quit[0], .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 || fds[1].revents)
            return false;
        char bytes[65536];
        ssize_t n = read(c->fd, bytes, sizeof(bytes));
        if (n <= 0)
            return false;
        (void)df_buf_add(b, bytes, (size_t)n);
    }
}

static inline bool kube_write(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* Until the client goes or the server ends. */
static inline void kube_hold(struct kube_connection *c)
{
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
                           {.fd = c->server->quit[0], .events = POLLIN}};
    (void)poll(fds, 2, -1);
}

/* False: the connection is over. */
static inline bool kube_answer(struct kube_connection *c, char *text)
{
    struct kube_server *s = c->server;
    char *body = strstr(text, "\r\n\r\n") + 4, *space = strchr(text, ' ');
    body[-2] = '\0';
    *space = '\0';
    char *target = space + 1, *head = strchr(target, '\r');
    *strchr(target, ' ') = '\0';
    struct kube_request r = {text, target, head, body};
    struct kube_reply a = {.bytes = DF_BUF_INIT(64 * DF_MIB), .cut = SIZE_MAX};
    (void)pthread_mutex_lock(&s->lock);
    (void)df_buf_addf(&s->seen, "%s %s\n", text, target);
    bool watch = strstr(target, "watch=true");
    s->watches += watch;
    s->lists += !watch && strstr(target, "limit=");
    s->handle(s, &r, &a);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    bool whole = a.cut >= a.bytes.len;
    bool sent = kube_write(c->fd, a.bytes.data, whole ? a.bytes.len : a.cut);
    if (a.hold && whole)
        kube_hold(c);
    df_buf_free(&a.bytes);
    return sent && whole && !a.hold && !a.close;
}

static inline void *kube_serve(void *arg)
{
    struct kube_connection *c = arg;
    DF_BUF struct df_buf b = DF_BUF_INIT(64 * DF_MIB);
    while (kube_read(c, &b) && kube_answer(c, b.data))
        df_buf_clear(&b);
    (void)close(c->fd);
    free(c);
    return NULL;
}

static inline void *kube_accept(void *arg)
{
    struct kube_server *s = arg;
    for (;;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        struct kube_connection *c = malloc(sizeof(*c));
        *c = (struct kube_connection){s, fd};
        assert_true(s->connections < KUBE_CONNECTIONS);
        if (pthread_create(&s->threads[s->connections++], NULL, kube_serve, c) != 0)
            abort();
    }
}

static inline void kube_start(struct kube_server *s,
                              void (*handle)(struct kube_server *, const struct kube_request *,
                                             struct kube_reply *),
                              void *arg)
{
    *s = (struct kube_server){.handle = handle, .arg = arg, .seen = DF_BUF_INIT(64 * DF_MIB)};
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pipe2(s->quit, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, kube_accept, s), 0);
}

static inline void kube_stop(struct kube_server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->quit[1]);
    for (size_t i = 0; i < s->connections; i++)
        (void)pthread_join(s->threads[i], NULL);
    (void)close(s->quit[0]);
    (void)close(s->listener);
    df_buf_free(&s->seen);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
}

/* A client of this server, with the token "t0ken". */
static inline struct df_kube *kube_client(const struct kube_server *s)
{
    struct df_kube_config c = {.source = strdup("a test"),
                               .server = df_strf("http://127.0.0.1:%u", s->port),
                               .name_space = strdup("build"),
                               .token = strdup("t0ken")};
    struct df_kube *k = NULL;
    struct df_err err = {0};
    if (df_kube_new(&c, &k, &err) < 0)
        fail_msg("%s", err.message);
    return k;
}

#endif
