/*
 * liveness.c - one thread polls the socket and at most CONNECTIONS connections. A new one takes the
 * place of the oldest: connections that send nothing keep nobody out.
 */
#include "spawner/http/liveness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "spawner/http/listen.h"

#define CONNECTIONS 32
#define HEAD_MAX 4096 /* of a probe; a longer one is cut off */

struct connection {
    int fd; /* -1: a free place */
    size_t n;
    char head[HEAD_MAX];
};

struct df_liveness {
    int listen_fd, stop_fd;
    pthread_t thread;
    size_t next; /* the place of the next connection: the oldest's */
    struct connection connections[CONNECTIONS];
};

static void close_connection(struct connection *c)
{
    if (c->fd >= 0)
        (void)close(DF_TAKE_FD(c->fd));
}

static void accept_connection(struct df_liveness *l)
{
    int fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct connection *c = &l->connections[l->next++ % CONNECTIONS];
    close_connection(c);
    c->fd = fd;
    c->n = 0;
}

static void answer(struct connection *c)
{
    static const char alive[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                                "Content-Length: 3\r\nConnection: close\r\n\r\nok\n";
    static const char nothing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n"
                                  "Connection: close\r\n\r\n";
    bool asks = df_starts_with(c->head, "GET /livez ");
    (void)send(c->fd, asks ? alive : nothing, (asks ? sizeof(alive) : sizeof(nothing)) - 1,
               MSG_NOSIGNAL);
    close_connection(c);
}

static void read_head(struct connection *c)
{
    ssize_t n = recv(c->fd, c->head + c->n, HEAD_MAX - 1 - c->n, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->n += n > 0 ? (size_t)n : 0;
    c->head[c->n] = '\0';
    if (strstr(c->head, "\r\n\r\n"))
        answer(c);
    else if (n <= 0 || c->n == HEAD_MAX - 1)
        close_connection(c);
}

static void *serve(void *arg)
{
    struct df_liveness *l = arg;
    for (;;) {
        struct pollfd polled[2 + CONNECTIONS] = {{.fd = l->stop_fd, .events = POLLIN},
                                                 {.fd = l->listen_fd, .events = POLLIN}};
        for (size_t i = 0; i < CONNECTIONS; i++)
            polled[2 + i] = (struct pollfd){.fd = l->connections[i].fd, .events = POLLIN};
        if (poll(polled, DF_ARRAY_SIZE(polled), -1) < 0)
            continue;
        if (polled[0].revents)
            return NULL;
        for (size_t i = 0; i < CONNECTIONS; i++)
            if (polled[2 + i].revents)
                read_head(&l->connections[i]);
        if (polled[1].revents)
            accept_connection(l);
    }
}

static void free_liveness(struct df_liveness *l)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        close_connection(&l->connections[i]);
    if (l->listen_fd >= 0)
        (void)close(l->listen_fd);
    if (l->stop_fd >= 0)
        (void)close(l->stop_fd);
    free(l);
}

int df_liveness_start(const char *listen, struct df_liveness **ret, struct df_err *err)
{
    *ret = NULL;
    if (!listen)
        return 0;
    struct df_liveness *l = calloc(1, sizeof(*l));
    if (!l)
        return df_fail_oom(err);
    for (size_t i = 0; i < CONNECTIONS; i++)
        l->connections[i].fd = -1;
    l->listen_fd = -1;
    l->stop_fd = eventfd(0, EFD_CLOEXEC);
    int failed = l->stop_fd < 0 ? errno : 0;
    if (!failed && df_listen_at("server.livez.listen", listen, &l->listen_fd, err) < 0) {
        free_liveness(l);
        return -1;
    }
    failed = failed ? failed : pthread_create(&l->thread, NULL, serve, l);
    if (failed) {
        free_liveness(l);
        return df_fail_errno(err, failed, "start the thread of server.livez.listen");
    }
    *ret = l;
    return 0;
}

void df_liveness_stop(struct df_liveness *l)
{
    if (!l)
        return;
    (void)eventfd_write(l->stop_fd, 1);
    (void)pthread_join(l->thread, NULL);
    free_liveness(l);
}
