/*
 * scrape.c - a listener, and a thread that answers one request after the other until it is stopped.
 *
 * libmicrohttpd would bring GnuTLS into a program that has OpenSSL, for one page without TLS.
 */
#include "runner/platform/scrape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "common/base/parse.h"
#include "common/metrics/metrics.h"

#define MOST_PIECES 4 /* of a request's head */

struct df_scrape {
    int listener, stop; /* stop: becomes readable when the thread is to end */
    pthread_t thread;
};

/* ---- one request ---- */

static bool read_head(int fd, struct df_buf *head)
{
    for (int i = 0; i < MOST_PIECES; i++) {
        char piece[1024];
        ssize_t n = recv(fd, piece, sizeof(piece), 0);
        if (n <= 0 || df_buf_add(head, piece, (size_t)n) < 0)
            return false;
        if (strstr(df_buf_str(head), "\r\n\r\n"))
            return true;
    }
    return false;
}

static void answer(int fd)
{
    DF_BUF struct df_buf head = DF_BUF_INIT(DF_LIMIT_SCRAPE_HEAD);
    DF_BUF struct df_buf body = DF_BUF_INIT(DF_LIMIT_METRICS_TEXT);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_METRICS_TEXT + DF_KIB);
    if (!read_head(fd, &head))
        return;
    const char *asked = df_buf_str(&head);
    bool is_known =
        df_starts_with(asked, "GET /metrics ") || df_starts_with(asked, "GET /metrics?");
    if (is_known && df_metrics_write(&body, NULL) < 0)
        return;
    (void)df_buf_addf(&out,
                      "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
                      "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      is_known ? "200 OK" : "404 Not Found", body.len, df_buf_str(&body));
    if (!out.failed && send(fd, out.data, out.len, MSG_NOSIGNAL) < 0)
        return; /* who asks again is answered again */
}

static void serve_next(const struct df_scrape *s)
{
    const struct timeval limit = {.tv_usec = DF_TIMEOUT_SCRAPE_MS * 1000};
    DF_CLOSE int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0)
        answer(fd);
}

static void *serve(void *arg)
{
    const struct df_scrape *s = arg;
    struct pollfd fds[] = {{.fd = s->listener, .events = POLLIN},
                           {.fd = s->stop, .events = POLLIN}};
    while (!fds[1].revents) {
        if (poll(fds, DF_ARRAY_SIZE(fds), -1) > 0 && fds[0].revents)
            serve_next(s);
    }
    return NULL;
}

/* ---- start and stop ---- */

static int listen_at(const struct addrinfo *at, const char *address, int *ret_fd,
                     struct df_err *err)
{
    DF_CLOSE int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
        return df_fail_errno(err, errno, "listen at %s", address);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int open_listener(const char *address, int *ret_fd, struct df_err *err)
{
    const char *colon = strrchr(address, ':');
    int64_t port;
    if (!colon || df_parse_i64(colon + 1, 0, 65535, &port, NULL) < 0)
        return df_fail(err, DF_ERR_USER, "\"%s\" is not HOST:PORT", address);
    bool is_v6 = *address == '[' && colon[-1] == ']';
    DF_FREE char *host = df_strf("%.*s", (int)(colon - address) - 2 * is_v6, address + is_v6);
    const struct addrinfo want = {.ai_family = colon == address ? AF_INET : AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (!host)
        return df_fail_oom(err);
    int failed = getaddrinfo(*host ? host : NULL, colon + 1, &want, &found);
    if (failed)
        return df_fail(err, DF_ERR_USER, "\"%s\": %s", address, gai_strerror(failed));
    int result = listen_at(found, address, ret_fd, err);
    freeaddrinfo(found);
    return result;
}

static int start_thread(struct df_scrape *s, struct df_err *err)
{
    sigset_t all, before; /* signals are for the main thread */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->thread, NULL, serve, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? df_fail_errno(err, failed, "start the thread of the metrics") : 0;
}

int df_scrape_start(const char *address, struct df_scrape **ret, struct df_err *err)
{
    DF_CLOSE int listener = -1;
    DF_CLOSE int stop = eventfd(0, EFD_CLOEXEC);
    DF_FREE struct df_scrape *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    if (stop < 0)
        return df_fail_errno(err, errno, "eventfd");
    if (open_listener(address, &listener, err) < 0)
        return -1;
    s->listener = listener;
    s->stop = stop;
    if (start_thread(s, err) < 0)
        return -1;
    listener = stop = -1;
    *ret = DF_TAKE(s);
    return 0;
}

unsigned df_scrape_port(const struct df_scrape *s)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {.v6 = {.sin6_family = AF_UNSPEC}};
    socklen_t n = sizeof(at);
    if (getsockname(s->listener, &at.any, &n) < 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

void df_scrape_stop(struct df_scrape *s)
{
    if (!s)
        return;
    if (eventfd_write(s->stop, 1) < 0)
        DF_BUG("eventfd_write: %d", errno);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->listener);
    (void)close(s->stop);
    free(s);
}
