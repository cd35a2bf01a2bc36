/*
 * api_world.h - the real server on a real port, with a real store, for tests that speak to it byte
 * by byte; and a client that can be as rude as a test wants. One test program includes it once.
 */
#ifndef TEST_API_WORLD_H
#define TEST_API_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/api/routes.h"
#include "spawner/control/control.h"
#include "spawner/http/api.h"
#include "spawner/identity/personal.h"
#include "spawner/journal/journal.h"

#define DEADLINE_MS 30000 /* after which something that should happen counts as never happening */

struct world {
    char dir[64];
    struct df_config config;
    struct df_spawner s;
    struct df_api *api;
    uint16_t port;
};

static inline char *path_in(const struct world *w, const char *name)
{
    char *path = df_fs_join(w->dir, name);
    assert_non_null(path);
    return path;
}

static inline void open_stores(struct world *w)
{
    DF_FREE char *db = path_in(w, "db"), *key = path_in(w, "key"), *blobs = path_in(w, "blobs");
    assert_int_equal(df_store_sqlite_open(db, &w->s.store, NULL), 0);
    assert_int_equal(df_vault_open(db, key, &w->s.vault, NULL), 0);
    assert_int_equal(df_personal_new(w->s.vault, &w->s.personal, NULL), 0);
    assert_int_equal(df_blob_open(blobs, &w->s.blobs, NULL), 0);
    assert_int_equal(df_states_open(w->s.blobs, w->s.vault, &w->s.states, NULL), 0);
    assert_int_equal(df_journal_new(w->s.store, &w->s.journal, NULL), 0);
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
}

static inline void start(struct world *w)
{
    struct df_err err = {0};
    if (df_api_start(&w->s, &df_routes, &w->api, &err) < 0)
        fail_msg("%s", err.message);
    w->port = (uint16_t)strtoul(strrchr(w->s.server_url, ':') + 1, NULL, 10);
}

static inline int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/dayfly-api-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->config.listen = strdup("127.0.0.1:0");
    w->s.config = &w->config;
    w->s.endpoint_file = path_in(w, "endpoint");
    open_stores(w);
    start(w);
    *state = w;
    return 0;
}

static inline int set_up_with_tokens(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/dayfly-api-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->config.listen = strdup("127.0.0.1:0");
    w->config.token_file = path_in(w, "tokens");
    w->s.config = &w->config;
    DF_BUF struct df_buf text = DF_BUF_INIT(1024);
    /* The token is the role's own name, but for a second caller with the role write. */
    static const char *const tokens[][2] = {
        {"read", "read"}, {"write", "write"}, {"other", "write"}, {"admin", "admin"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(tokens); i++) {
        char hex[DF_SHA256_HEX];
        assert_int_equal(df_sha256_hex(tokens[i][0], strlen(tokens[i][0]), hex, NULL), 0);
        (void)df_buf_addf(&text, "%s-name %s %s\n", tokens[i][0], tokens[i][1], hex);
    }
    assert_int_equal(df_fs_replace(w->config.token_file, text.data, text.len, 0600, NULL), 0);
    open_stores(w);
    start(w);
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = *state;
    df_api_stop(w->api);
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    df_memory_free(&w->s.memory);
    df_journal_free(w->s.journal);
    df_states_close(w->s.states);
    df_blob_close(w->s.blobs);
    df_personal_free(w->s.personal);
    df_vault_close(w->s.vault);
    df_store_close(w->s.store);
    assert_int_equal(df_fs_remove_tree(w->dir, NULL), 0);
    free(w->s.endpoint_file);
    free(w->s.server_url);
    free(w->config.listen);
    free(w->config.token_file);
    free(w);
    return 0;
}

/* ---- a client of its own, that can be as rude as a test wants ---- */

static inline int dial(const struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(w->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    const struct timeval patience = {.tv_sec = DEADLINE_MS / 1000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return fd;
}

static inline void say(int fd, const char *bytes)
{
    for (size_t n = strlen(bytes); n;) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return; /* refused: what matters is the answer */
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* Reads until the text contains this, or the end. True: it does. */
static inline bool hear(int fd, struct df_buf *b, const char *until)
{
    while (!strstr(df_buf_str(b), until)) {
        char *to = df_buf_reserve(b, 4096);
        ssize_t n = to ? recv(fd, to, 4096, 0) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        b->len += (size_t)n;
        b->data[b->len] = '\0';
    }
    return true;
}

static inline void hear_all(int fd, struct df_buf *b)
{
    (void)hear(fd, b, "\x01 never said");
}

struct reply {
    int status;
    struct df_buf all;
    const char *body;
};

static inline void reply_free(struct reply *r)
{
    df_buf_free(&r->all);
}
#define REPLY DF_CLEANUP(reply_free)

/* One request on a connection of its own, which the request itself closes. */
static inline struct reply ask(const struct world *w, const char *raw)
{
    struct reply r = {.all = DF_BUF_INIT(16 * DF_MIB)};
    DF_CLOSE int fd = dial(w);
    say(fd, raw);
    hear_all(fd, &r.all);
    const char *text = df_buf_str(&r.all), *end = strstr(text, "\r\n\r\n");
    r.status = df_starts_with(text, "HTTP/1.1 ") ? (int)strtol(text + 9, NULL, 10) : 0;
    r.body = end ? end + 4 : "";
    return r;
}

#define HEAD "Host: localhost\r\nConnection: close\r\n"
#define JSON_HEAD HEAD "Content-Type: application/json\r\n"

static inline struct reply get(const struct world *w, const char *path, const char *headers)
{
    DF_FREE char *raw = df_strf("GET %s HTTP/1.1\r\n" HEAD "%s\r\n", path, headers);
    return ask(w, raw);
}

static inline struct reply post(const struct world *w, const char *path, const char *headers,
                                const char *body)
{
    const char *type = strstr(headers, "Content-Type:") ? "" : "Content-Type: application/json\r\n";
    DF_FREE char *raw = df_strf("POST %s HTTP/1.1\r\n" HEAD "%sContent-Length: %zu\r\n%s\r\n%s",
                                path, type, strlen(body), headers, body);
    return ask(w, raw);
}

static inline void expect_problem(const struct reply *r, int status, const char *reason)
{
    DF_FREE char *type = df_strf("https://dayfly.dev/problems/%s\"", reason);
    if (r->status != status || !strstr(r->body, type))
        fail_msg("wanted %d %s, got: %s", status, reason, df_buf_str(&r->all));
    assert_non_null(strcasestr(df_buf_str(&r->all), "\r\nContent-Type: application/problem+json"));
}

#define EXECUTOR                                                                                   \
    "{\"metadata\":{\"name\":\"net\"},\"spec\":{\"source\":{\"url\":\"file:///srv/net\","          \
    "\"kind\":\"directory\"}}}"

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define GUARDED(test) cmocka_unit_test_setup_teardown(test, set_up_with_tokens, tear_down)

#endif
