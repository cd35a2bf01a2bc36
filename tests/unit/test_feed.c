#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "spawner/cli/client.h"
#include "spawner/cli/follow/feed.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

/* A server of one thread: answers each connection by the path that was asked for. */
struct server {
    int listener;
    pthread_t thread;
    char url[64];
    char last_id[64]; /* of the last request; read after the stream has closed */
};

static void send_text(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void send_flood(int fd)
{
    send_text(fd, HEAD);
    while (send(fd, "data: {}\n\n", 10, MSG_NOSIGNAL) == 10)
        ;
}

static void answer(struct server *s, int fd)
{
    char head[4096];
    size_t n = 0;
    while (n < sizeof(head) - 1) {
        ssize_t got = recv(fd, head + n, sizeof(head) - 1 - n, 0);
        if (got <= 0)
            return;
        n += (size_t)got;
        head[n] = '\0';
        if (strstr(head, "\r\n\r\n"))
            break;
    }
    const char *id = strstr(head, "Last-Event-ID: ");
    (void)snprintf(s->last_id, sizeof(s->last_id), "%.*s", id ? (int)strcspn(id + 15, "\r\n") : 0,
                   id ? id + 15 : "");
    if (strstr(head, "GET /two "))
        send_text(fd, HEAD "event: run\nid: x:1\ndata: {\"n\": 1}\n\ndata: {\"n\": 2}\n\n");
    else if (strstr(head, "GET /odd "))
        send_text(fd, HEAD "data: no json\n\n");
    else if (strstr(head, "GET /flood "))
        send_flood(fd);
    else
        send_text(fd, "HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\n"
                      "Content-Length: 2\r\nConnection: close\r\n\r\n{}");
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (;;) {
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        answer(s, fd);
        (void)close(fd);
    }
}

static void start(struct server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    (void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(a.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->listener);
}

static void add(struct df_feed *f, const struct server *s, const char *path, const char *last_id,
                int stream)
{
    char url[64];
    (void)snprintf(url, sizeof(url), "%s", s->url);
    const struct df_client_address address = {.url = url};
    const struct df_feed_source source = {
        .address = &address, .path = path, .last_id = last_id, .stream = stream};
    assert_int_equal(df_feed_add(f, &source, NULL), 0);
}

/* Waits for the next event. */
static void next(struct df_feed *f, struct df_feed_event *e)
{
    struct pollfd p = {.fd = df_feed_fd(f), .events = POLLIN};
    while (!df_feed_next(f, e))
        assert_int_equal(poll(&p, 1, 60000), 1);
}

static void events_come_in_order_and_then_the_end(void **state)
{
    (void)state;
    struct server s = {0};
    struct df_feed *f = NULL;
    start(&s);
    assert_int_equal(df_feed_open(&f, NULL), 0);
    add(f, &s, "/two", "net-1-plan:77", 5);
    struct df_feed_event e = {0};
    next(f, &e);
    assert_string_equal(e.name, "run");
    assert_string_equal(e.id, "x:1");
    assert_int_equal(e.stream, 5);
    assert_int_equal(df_json_int(e.data, "n", 0), 1);
    df_feed_event_free(&e);
    next(f, &e);
    assert_string_equal(e.name, "message");
    assert_int_equal(df_json_int(e.data, "n", 0), 2);
    df_feed_event_free(&e);
    next(f, &e);
    assert_string_equal(e.name, "closed");
    assert_int_equal(e.failure.cls, DF_ERR_NONE);
    assert_string_equal(s.last_id, "net-1-plan:77");
    assert_false(df_feed_next(f, &e));
    df_feed_close(f);
    stop(&s);
}

static void failures_are_told_by_the_last_event(void **state)
{
    (void)state;
    struct server s = {0}, nobody = {.url = "http://127.0.0.1:1"};
    struct df_feed *f = NULL;
    struct df_feed_event e = {0};
    start(&s);
    assert_int_equal(df_feed_open(&f, NULL), 0);
    add(f, &s, "/nothing", NULL, 1);
    next(f, &e);
    assert_string_equal(e.name, "closed");
    assert_int_equal(e.failure.cls, DF_ERR_NOT_FOUND);
    add(f, &nobody, "/two", NULL, 2);
    next(f, &e);
    assert_int_equal(e.stream, 2);
    assert_int_equal(e.failure.cls, DF_ERR_RETRY);
    add(f, &s, "/odd", NULL, 3);
    next(f, &e);
    assert_null(e.data);
    assert_int_equal(e.failure.cls, DF_ERR_USER);
    df_feed_close(f);
    stop(&s);
}

static void a_feed_that_nobody_reads_can_be_closed(void **state)
{
    (void)state;
    struct server s = {0};
    struct df_feed *f = NULL;
    struct df_feed_event e = {0};
    start(&s);
    assert_int_equal(df_feed_open(&f, NULL), 0);
    add(f, &s, "/flood", NULL, 1);
    for (int i = 0; i < 500; i++) {
        next(f, &e);
        df_feed_event_free(&e);
    }
    df_feed_close(f);
    stop(&s);
}

static void paths_are_built_from_escaped_segments(void **state)
{
    (void)state;
    DF_FREE char *path = df_path("secrets", "../a b", "ca.crt", NULL);
    assert_string_equal(path, "/v1/secrets/..%2Fa%20b/ca.crt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_order_and_then_the_end),
        cmocka_unit_test(failures_are_told_by_the_last_event),
        cmocka_unit_test(a_feed_that_nobody_reads_can_be_closed),
        cmocka_unit_test(paths_are_built_from_escaped_segments),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
