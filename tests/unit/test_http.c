#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/http/http.h"

/* A server that reads requests and answers each with the next text of its script. */
struct answer {
    const char *bytes;
    size_t repeat; /* the bytes of `fill` so many times behind it */
    const char *fill;
    bool then_close; /* else the connection is kept */
    bool then_stall; /* sends no more until the client goes away */
};

struct server {
    const struct answer *answers;
    size_t count;
    int listener;
    int quit[2]; /* closed at the writing end: be gone */
    uint16_t port;
    pthread_t thread;
    size_t connections;
    struct df_buf seen; /* all requests, one after the other */
};

static size_t body_length(const char *head)
{
    const char *p = strstr(head, "Content-Length: ");
    return p ? strtoul(p + strlen("Content-Length: "), NULL, 10) : 0;
}

/* Reads one request into seen. False when the client closed. */
static bool read_request(struct server *s, int fd)
{
    size_t start = s->seen.len;
    for (;;) {
        char *end = s->seen.data ? strstr(s->seen.data + start, "\r\n\r\n") : NULL;
        if (end &&
            s->seen.len >= (size_t)(end + 4 - s->seen.data) + body_length(s->seen.data + start))
            return true;
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = s->quit[0]}};
        if (poll(fds, 2, -1) < 0 || fds[1].revents)
            return false;
        char bytes[65536];
        ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n <= 0)
            return false;
        (void)df_buf_add(&s->seen, bytes, (size_t)n);
    }
}

static bool send_all(int fd, const char *bytes, size_t n)
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

static bool send_answer(const struct answer *a, int fd)
{
    if (!send_all(fd, a->bytes, strlen(a->bytes)))
        return false;
    for (size_t i = 0; i < a->repeat; i++)
        if (!send_all(fd, a->fill, strlen(a->fill)))
            return false;
    char c;
    if (a->then_stall)
        (void)!recv(fd, &c, 1, 0);
    return !a->then_close && !a->then_stall;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (size_t next = 0; next < s->count;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            break;
        s->connections++;
        while (next < s->count && read_request(s, fd))
            if (!send_answer(&s->answers[next++], fd))
                break;
        (void)close(fd);
    }
    return NULL;
}

static void start(struct server *s, const struct answer *answers, size_t count)
{
    *s = (struct server){.answers = answers, .count = count, .seen = DF_BUF_INIT(64 * DF_MIB)};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pipe2(s->quit, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}
#define START(s, ...)                                                                              \
    start((s), (const struct answer[]){__VA_ARGS__},                                               \
          DF_ARRAY_SIZE(((const struct answer[]){__VA_ARGS__})))

static void stop(struct server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)close(s->quit[1]);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->listener);
    (void)close(s->quit[0]);
    df_buf_free(&s->seen);
}

static char *url_of(const struct server *s, const char *path)
{
    return df_strf("http://127.0.0.1:%u%s", s->port, path);
}

static struct df_http *client(const struct df_http_options *o)
{
    struct df_http *h = NULL;
    struct df_err err = {0};
    if (df_http_new(o, &h, &err) < 0)
        fail_msg("%s", err.message);
    return h;
}

#define OK_ANSWER                                                                                  \
    {                                                                                              \
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0, NULL, false, false                    \
    }

static void a_get_brings_status_body_and_the_headers_that_matter(void **state)
{
    (void)state;
    struct server s;
    START(&s, {"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nETag: \"7\"\r\n"
               "Retry-After: 12\r\nLocation: /there\r\nDate: Sat, 21 Nov 2026 08:50:01 GMT\r\n"
               "Content-Length: 5\r\n\r\nlater",
               0, NULL, false, false});
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.bearer = "t0ken"});
    DF_FREE char *url = url_of(&s, "/a?b=c");
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
    assert_int_equal(r.status, 503);
    assert_string_equal(df_buf_str(&r.body), "later");
    assert_string_equal(r.content_type, "text/plain");
    assert_string_equal(r.etag, "\"7\"");
    assert_string_equal(r.location, "/there");
    assert_string_equal(r.date, "Sat, 21 Nov 2026 08:50:01 GMT");
    assert_int_equal(r.retry_after_s, 12);
    assert_false(r.stopped);
    assert_true(df_starts_with(df_buf_str(&s.seen), "GET /a?b=c HTTP/1.1\r\n"));
    assert_non_null(strstr(df_buf_str(&s.seen), "\r\nAuthorization: Bearer t0ken\r\n"));
    assert_non_null(strstr(df_buf_str(&s.seen), "\r\nUser-Agent: dayfly/"));
    assert_null(strstr(df_buf_str(&s.seen), "Content-Type"));
    stop(&s);
}

static void every_method_goes_out_as_named_with_its_body(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body;
        const char *length; /* the Content-Length line, or NULL when there must be none */
    } cases[] = {
        {"GET", NULL, NULL},
        {"DELETE", NULL, NULL},
        {"POST", "{}", "\r\nContent-Length: 2\r\n"},
        {"POST", NULL, "\r\nContent-Length: 0\r\n"},
        {"PUT", "abc", "\r\nContent-Length: 3\r\n"},
        {"PATCH", "abc", "\r\nContent-Length: 3\r\n"},
        {"LOCK", "{\"ID\":1}", "\r\nContent-Length: 8\r\n"},
        {"UNLOCK", NULL, "\r\nContent-Length: 0\r\n"},
        {"DELETE", "x", "\r\nContent-Length: 1\r\n"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct server s;
        START(&s, OK_ANSWER);
        DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
        DF_FREE char *url = url_of(&s, "/x");
        struct df_http_request req = DF_HTTP_REQUEST(cases[i].method, url);
        req.body = cases[i].body;
        req.body_len = cases[i].body ? strlen(cases[i].body) : 0;
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        assert_int_equal(df_http_send(h, &req, &r, NULL), 0);
        DF_FREE char *line = df_strf("%s /x HTTP/1.1\r\n", cases[i].method);
        assert_true(df_starts_with(df_buf_str(&s.seen), line));
        if (cases[i].length)
            assert_non_null(strstr(df_buf_str(&s.seen), cases[i].length));
        else
            assert_null(strstr(df_buf_str(&s.seen), "Content-Length"));
        assert_int_equal(!!strstr(df_buf_str(&s.seen), "\r\nContent-Type: application/json\r\n"),
                         !!cases[i].body);
        assert_null(strstr(df_buf_str(&s.seen), "Expect"));
        if (cases[i].body)
            assert_true(df_ends_with(df_buf_str(&s.seen), cases[i].body));
        stop(&s);
    }
}

static void a_head_does_not_wait_for_a_body(void **state)
{
    (void)state;
    struct server s;
    START(&s, {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 0, NULL, false, false});
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_FREE char *url = url_of(&s, "/");
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("HEAD", url), &r, NULL), 0);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.body.len, 0);
    stop(&s);
}

static void one_connection_serves_many_requests(void **state)
{
    (void)state;
    struct server s;
    START(&s, OK_ANSWER, OK_ANSWER,
          {"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 0, NULL, false, false}, OK_ANSWER);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.user = "u", .password = "p"});
    DF_FREE char *url = url_of(&s, "/");
    for (int i = 0; i < 4; i++) {
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
        assert_int_equal(r.status, i == 2 ? 404 : 200);
    }
    assert_non_null(strstr(df_buf_str(&s.seen), "\r\nAuthorization: Basic dTpw\r\n"));
    stop(&s);
    assert_int_equal(s.connections, 1);
}

static void nothing_of_a_request_leaks_into_the_next(void **state)
{
    (void)state;
    struct server s;
    START(&s, OK_ANSWER, OK_ANSWER);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_FREE char *url = url_of(&s, "/");
    DF_STRS struct df_strs headers = {0};
    (void)df_strs_add(&headers, "Content-MD5: abc");
    struct df_http_request req = DF_HTTP_REQUEST("POST", url);
    req.headers = &headers;
    req.content_type = "application/octet-stream";
    req.body = "body";
    req.body_len = 4;
    DF_HTTP_RESPONSE struct df_http_response a = {0};
    assert_int_equal(df_http_send(h, &req, &a, NULL), 0);
    assert_non_null(strstr(df_buf_str(&s.seen), "\r\nContent-MD5: abc\r\n"));
    assert_non_null(strstr(df_buf_str(&s.seen), "\r\nContent-Type: application/octet-stream\r\n"));
    size_t first = s.seen.len;
    DF_HTTP_RESPONSE struct df_http_response b = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &b, NULL), 0);
    const char *second = df_buf_str(&s.seen) + first;
    assert_true(df_starts_with(second, "GET / HTTP/1.1\r\n"));
    assert_null(strstr(second, "Content-"));
    stop(&s);
}

static int body_file(size_t n)
{
    char name[] = "/tmp/df-http-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    assert_true(fd >= 0);
    (void)unlink(name);
    for (size_t i = 0; i < n; i += 1000) {
        char line[1001];
        (void)snprintf(line, sizeof(line), "%0999zu\n", i);
        assert_int_equal(write(fd, line, n - i < 1000 ? n - i : 1000), n - i < 1000 ? n - i : 1000);
    }
    return fd;
}

static void a_body_from_a_descriptor_is_streamed_whatever_its_offset(void **state)
{
    (void)state;
    struct server s;
    START(&s, {"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0, NULL, false, false});
    const size_t n = 3 * DF_MIB + 17;
    DF_CLOSE int fd = body_file(n);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_FREE char *url = url_of(&s, "/");
    struct df_http_request req = DF_HTTP_REQUEST("PUT", url);
    req.body_fd = fd;
    req.body_len = n;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &req, &r, NULL), 0);
    assert_int_equal(r.status, 201);
    const char *got = strstr(df_buf_str(&s.seen), "\r\n\r\n") + 4;
    assert_int_equal(s.seen.len - (size_t)(got - s.seen.data), n);
    char *want = malloc(n);
    assert_int_equal(pread(fd, want, n, 0), n);
    assert_memory_equal(got, want, n);
    free(want);
    stop(&s);
}

static void a_body_that_is_shorter_than_said_is_an_error(void **state)
{
    (void)state;
    struct server s;
    START(&s, OK_ANSWER);
    DF_CLOSE int fd = body_file(1000);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_FREE char *url = url_of(&s, "/");
    struct df_http_request req = DF_HTTP_REQUEST("PUT", url);
    req.body_fd = fd;
    req.body_len = 2000;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    struct df_err err = {0};
    assert_int_equal(df_http_send(h, &req, &r, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "shorter than 2000 bytes"));
    stop(&s);
}

static void an_answer_beyond_the_cap_is_refused(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", /* of unknown length */
        "HTTP/1.1 500 No\r\nContent-Length: 200000\r\n\r\n",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(heads); i++) {
        struct server s;
        START(&s, {heads[i], 20000, "0123456789", true, false});
        DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
        DF_FREE char *url = url_of(&s, "/");
        struct df_http_request req = DF_HTTP_REQUEST("GET", url);
        req.max_response = 199999;
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_send(h, &req, &r, &err), -1);
        assert_int_equal(err.cls, DF_ERR_LIMIT);
        assert_non_null(strstr(err.message, "larger than 199999 bytes"));
        stop(&s);
    }
}

struct sink {
    size_t bytes, stop_after;
};

static int count(void *arg, const char *bytes, size_t n)
{
    (void)bytes;
    struct sink *k = arg;
    k->bytes += n;
    return k->stop_after && k->bytes >= k->stop_after ? -1 : 0;
}

static void a_streamed_body_does_not_pass_through_memory_and_may_be_stopped(void **state)
{
    (void)state;
    char piece[10001];
    memset(piece, 'x', 10000);
    piece[10000] = '\0';
    for (int stopping = 0; stopping < 2; stopping++) {
        struct server s;
        START(&s,
              {"HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\n", 2000, piece, true, false});
        DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
        DF_FREE char *url = url_of(&s, "/");
        struct sink sink = {.stop_after = stopping ? 100000 : 0};
        struct df_http_request req = DF_HTTP_REQUEST("GET", url);
        req.on_data = count;
        req.arg = &sink;
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        assert_int_equal(df_http_send(h, &req, &r, NULL), 0);
        assert_int_equal(r.status, 200);
        assert_int_equal(r.stopped, stopping);
        assert_int_equal(r.body.len, 0);
        assert_true(stopping ? sink.bytes < 20000000 : sink.bytes == 20000000);
        stop(&s);
    }
}

static void an_error_page_goes_into_the_response_even_when_streaming(void **state)
{
    (void)state;
    struct server s;
    START(&s, {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone", 0, NULL, true, false});
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_FREE char *url = url_of(&s, "/");
    struct sink sink = {0};
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.on_data = count;
    req.arg = &sink;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &req, &r, NULL), 0);
    assert_int_equal(sink.bytes, 0);
    assert_string_equal(df_buf_str(&r.body), "gone");
    stop(&s);
}

static void what_breaks_off_may_be_tried_again(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(answers); i++) {
        struct server s;
        START(&s, {answers[i], 0, NULL, true, false});
        DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
        DF_FREE char *url = url_of(&s, "/");
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        stop(&s);
    }
}

static void nobody_listening_may_be_tried_again(void **state)
{
    (void)state;
    struct server s;
    START(&s, OK_ANSWER);
    DF_FREE char *url = url_of(&s, "/path?secret=1");
    stop(&s);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    struct df_err err = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_true(df_starts_with(err.message, "GET http://127.0.0.1:"));
    assert_null(strstr(err.message, "secret"));
}

static void a_silent_peer_is_left_by_time_out_idle_time_or_stop(void **state)
{
    (void)state;
    static const struct {
        int64_t timeout_ms, idle_ms;
        bool stop;
        const char *message;
    } cases[] = {
        {50, 0, false, "timed out"},
        {-1, 50, false, "nothing moved for 50 ms"},
        {-1, 0, true, "stopped"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct server s;
        START(&s, {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 0, NULL, false, true});
        DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
        DF_FREE char *url = url_of(&s, "/");
        struct df_http_request req = DF_HTTP_REQUEST("GET", url);
        req.timeout_ms = cases[i].timeout_ms;
        req.idle_timeout_ms = cases[i].idle_ms;
        req.stop = &cases[i].stop;
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_send(h, &req, &r, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        assert_non_null(strstr(err.message, cases[i].message));
        stop(&s);
    }
}

/* The kernel takes the connection, and nobody says a word of TLS: a process that froze. */
static void a_frozen_peer_is_left_when_the_time_to_connect_is_over(void **state)
{
    (void)state;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof to;
    DF_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &len), 0);
    DF_FREE char *url = df_strf("https://127.0.0.1:%d/", ntohs(to.sin_port));
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.connect_ms = 50});
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.timeout_ms = -1;
    struct df_err err = {0};
    assert_int_equal(df_http_send(h, &req, &r, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

static void bad_urls_methods_and_headers_are_refused_before_anything_is_sent(void **state)
{
    (void)state;
    static const struct {
        const char *method, *url, *header, *message;
    } cases[] = {
        {"GET", "ftp://127.0.0.1/x", NULL, "only http and https"},
        {"GET", "file:///etc/passwd", NULL, "only http and https"},
        {"GET", "gopher://127.0.0.1/x", NULL, "only http and https"},
        {"GET", "http://127.0.0.1:99999/", NULL, "is not a URL"},
        {"GET", "not a url", NULL, "is not a URL"},
        {"GET", "", NULL, "is not a URL"},
        {"GET", "http://user:hunter2@127.0.0.1/", NULL, "give them as credentials"},
        {"GET", "http://127.0.0.1/\r\nX: y", NULL, "is not a URL"},
        {"GET /evil", "http://127.0.0.1/", NULL, "is no HTTP method"},
        {"", "http://127.0.0.1/", NULL, "is no HTTP method"},
        {"GET", "http://127.0.0.1/", "A: b\r\nC: d", "control character"},
    };
    DF_HTTP struct df_http *h = client(&(struct df_http_options){0});
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_STRS struct df_strs headers = {0};
        if (cases[i].header)
            (void)df_strs_add(&headers, cases[i].header);
        struct df_http_request req = DF_HTTP_REQUEST(cases[i].method, cases[i].url);
        req.headers = &headers;
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_send(h, &req, &r, &err), -1);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].url, err.message);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_null(strstr(err.message, "hunter2"));
    }
    struct df_err err = {0};
    struct df_http *none = NULL;
    assert_int_equal(df_http_new(&(struct df_http_options){.bearer = "a\nb"}, &none, &err), -1);
    assert_null(strstr(err.message, "a\nb"));
    assert_null(none);
}

static void a_file_is_read_only_where_allowed(void **state)
{
    (void)state;
    char name[] = "/tmp/df-http-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    assert_int_equal(write(fd, "hello", 5), 5);
    (void)close(fd);
    DF_FREE char *url = df_strf("file://%s", name);
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.allow_file = true});
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
    assert_int_equal(r.status, 200);
    assert_string_equal(df_buf_str(&r.body), "hello");
    (void)unlink(name);
    struct df_err err = {0};
    DF_HTTP_RESPONSE struct df_http_response none = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &none, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void redirects_are_followed_only_when_asked_for(void **state)
{
    (void)state;
    for (int follow = 0; follow < 2; follow++) {
        struct server s;
        START(&s,
              {"HTTP/1.1 302 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n", 0, NULL,
               false, false},
              {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere", 0, NULL, false, false});
        DF_HTTP struct df_http *h =
            client(&(struct df_http_options){.follow_redirects = follow, .bearer = "t0ken"});
        DF_FREE char *url = url_of(&s, "/here");
        DF_HTTP_RESPONSE struct df_http_response r = {0};
        assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
        assert_int_equal(r.status, follow ? 200 : 302);
        if (follow) {
            const char *second = strstr(df_buf_str(&s.seen), "GET /there ");
            assert_non_null(second);
            assert_non_null(strstr(second, "Bearer t0ken")); /* the same host */
        }
        stop(&s);
    }
}

static void credentials_do_not_follow_a_redirect_to_another_host(void **state)
{
    (void)state;
    struct server a, b;
    START(&b, OK_ANSWER);
    DF_FREE char *to_b = df_strf(
        "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:%u/x\r\nContent-Length: 0\r\n\r\n",
        b.port);
    START(&a, {to_b, 0, NULL, false, false});
    DF_HTTP struct df_http *h =
        client(&(struct df_http_options){.follow_redirects = true, .bearer = "t0ken"});
    DF_FREE char *url = url_of(&a, "/");
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(df_buf_str(&a.seen), "t0ken"));
    assert_null(strstr(df_buf_str(&b.seen), "t0ken"));
    stop(&a);
    stop(&b);
}

/* Asks a server that redirects to another one, which refuses with this text; returns how
 * df_http_check() puts it. */
static struct df_err refusal_behind_a_redirect(const char *content_type)
{
    struct server a, b;
    struct df_err err = {0};
    DF_FREE char *refusal = df_strf("HTTP/1.1 404 No\r\nContent-Type: %s\r\n"
                                    "Content-Length: 18\r\n\r\n{\"title\":\"inside\"}",
                                    content_type);
    START(&b, {refusal, 0, NULL, false, false});
    DF_FREE char *to_b = df_strf(
        "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:%u/x\r\nContent-Length: 0\r\n\r\n",
        b.port);
    START(&a, {to_b, 0, NULL, false, false});
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.follow_redirects = true});
    DF_FREE char *url = url_of(&a, "/");
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, NULL), 0);
    assert_int_equal(df_http_check(&r, "source", &err), -1);
    stop(&a);
    stop(&b);
    return err;
}

static void the_text_behind_a_redirect_to_another_port_is_not_shown(void **state)
{
    (void)state;
    static const char *const types[] = {"text/plain", "application/problem+json"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++) {
        struct df_err err = refusal_behind_a_redirect(types[i]);
        assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
        assert_string_equal(err.message,
                            "source: HTTP 404, after a redirect to another host or port");
    }
}

static void a_redirect_loop_and_a_redirected_write_come_to_an_end(void **state)
{
    (void)state;
    struct answer loop[7];
    for (size_t i = 0; i < DF_ARRAY_SIZE(loop); i++)
        loop[i] = (struct answer){"HTTP/1.1 301 Loop\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
                                  0, NULL, false, false};
    struct server s;
    start(&s, loop, DF_ARRAY_SIZE(loop));
    DF_HTTP struct df_http *h = client(&(struct df_http_options){.follow_redirects = true});
    DF_FREE char *url = url_of(&s, "/");
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    struct df_err err = {0};
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("GET", url), &r, &err), -1);
    assert_non_null(strstr(err.message, "more than 5 redirects"));
    assert_int_equal(df_http_send(h, &DF_HTTP_REQUEST("POST", url), &r, &err), 0);
    assert_int_equal(r.status, 301); /* a POST is never repeated elsewhere */
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_brings_status_body_and_the_headers_that_matter),
        cmocka_unit_test(every_method_goes_out_as_named_with_its_body),
        cmocka_unit_test(a_head_does_not_wait_for_a_body),
        cmocka_unit_test(one_connection_serves_many_requests),
        cmocka_unit_test(nothing_of_a_request_leaks_into_the_next),
        cmocka_unit_test(a_body_from_a_descriptor_is_streamed_whatever_its_offset),
        cmocka_unit_test(a_body_that_is_shorter_than_said_is_an_error),
        cmocka_unit_test(an_answer_beyond_the_cap_is_refused),
        cmocka_unit_test(a_streamed_body_does_not_pass_through_memory_and_may_be_stopped),
        cmocka_unit_test(an_error_page_goes_into_the_response_even_when_streaming),
        cmocka_unit_test(what_breaks_off_may_be_tried_again),
        cmocka_unit_test(nobody_listening_may_be_tried_again),
        cmocka_unit_test(a_silent_peer_is_left_by_time_out_idle_time_or_stop),
        cmocka_unit_test(a_frozen_peer_is_left_when_the_time_to_connect_is_over),
        cmocka_unit_test(bad_urls_methods_and_headers_are_refused_before_anything_is_sent),
        cmocka_unit_test(a_file_is_read_only_where_allowed),
        cmocka_unit_test(redirects_are_followed_only_when_asked_for),
        cmocka_unit_test(credentials_do_not_follow_a_redirect_to_another_host),
        cmocka_unit_test(the_text_behind_a_redirect_to_another_port_is_not_shown),
        cmocka_unit_test(a_redirect_loop_and_a_redirected_write_come_to_an_end),
    };
    struct df_err err = {0};
    if (df_http_global_init(&err) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
