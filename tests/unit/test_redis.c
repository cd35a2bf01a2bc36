#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "common/crypto/certificate.h"
#include "tests/unit/redis_server.h"
#include "tests/unit/scratch.h"

#define LOCAL "127.0.0.1"

static struct df_redis_options to(const struct redis_server *s)
{
    return (struct df_redis_options){.host = LOCAL, .port = s->port, .timeout_ms = 5000};
}

static void assert_fails(struct df_redis *r, enum df_err_class cls, const char *said)
{
    struct df_err err = {0};
    assert_int_equal(SAY(r, NULL, &err, "GET", "k"), -1);
    if (err.cls != cls || !strstr(err.message, said))
        fail_msg("%s instead of %s: %s", df_err_class_name(err.cls), df_err_class_name(cls),
                 err.message);
}

/* ---- one server ---- */

static void commands_carry_bytes_and_answers_have_kinds(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "");
    const struct df_redis_options o = to(&s);
    REDIS *r = redis_client(&o);
    static const char key[] = "k\0\r\n", value[] = "\xac\xed\0\5";
    const struct df_redis_arg set[] = {DF_REDIS_TEXT("SET"), {key, 4}, {value, 4}};
    const struct df_redis_arg get[] = {DF_REDIS_TEXT("GET"), {key, 4}};
    assert_int_equal(df_redis_command(r, set, 3, NULL, NULL), 0);
    DF_REDIS_ANSWER bytes = {0}, nil = {0}, number = {0}, list = {0};
    assert_int_equal(df_redis_command(r, get, 2, &bytes, NULL), 0);
    assert_int_equal(bytes.kind, DF_REDIS_BYTES);
    assert_int_equal(bytes.bytes.len, 4);
    assert_memory_equal(bytes.bytes.data, value, 4);
    OK(r, &nil, "GET", "absent");
    assert_int_equal(nil.kind, DF_REDIS_NIL);
    OK(r, &number, "RPUSH", "l", "a", "b");
    assert_int_equal(number.kind, DF_REDIS_INTEGER);
    assert_int_equal(number.integer, 2);
    OK(r, &list, "LRANGE", "l", "0", "-1");
    assert_int_equal(list.kind, DF_REDIS_LIST);
    assert_int_equal(list.integer, 2);
    assert_string_equal(df_buf_str(&list.items[1].bytes), "b");
}

static void a_refusal_has_the_servers_words_but_not_the_arguments(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "");
    const struct df_redis_options o = to(&s);
    REDIS *r = redis_client(&o);
    struct df_err err = {0};
    assert_int_equal(SAY(r, NULL, &err, "NOSUCH", "hunter2"), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "unknown command"));
    assert_null(strstr(err.message, "hunter2"));
    OK(r, NULL, "XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM");
    assert_int_equal(SAY(r, NULL, &err, "XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM"), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    OK(r, NULL, "PING"); /* the connection is as good as before */
}

static void a_pipeline_says_how_much_of_it_was_done(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "");
    const struct df_redis_options o = to(&s);
    REDIS *r = redis_client(&o);
    const struct df_redis_arg push[] = {DF_REDIS_TEXT("RPUSH"), DF_REDIS_TEXT("l"),
                                        DF_REDIS_TEXT("x")};
    const struct df_redis_arg wrong[] = {DF_REDIS_TEXT("INCR"), DF_REDIS_TEXT("l")};
    const struct df_redis_arg *const good[] = {push, push, push}, *const bad[] = {push, wrong,
                                                                                  push};
    size_t done = 0;
    assert_int_equal(df_redis_pipeline(r, good, (const size_t[]){3, 3, 3}, 3, &done, NULL), 0);
    assert_int_equal(done, 3);
    struct df_err err = {0};
    assert_int_equal(df_redis_pipeline(r, bad, (const size_t[]){3, 2, 3}, 3, &done, &err), -1);
    assert_int_equal(done, 1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(df_redis_pipeline(r, NULL, NULL, 0, &done, NULL), 0);
}

static void a_client_connects_again_after_its_server_was_away(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "");
    const struct df_redis_options o = to(&s);
    REDIS *r = redis_client(&o);
    OK(r, NULL, "PING");
    redis_stop(&s);
    assert_fails(r, DF_ERR_RETRY, "Redis 127.0.0.1:");
    assert_fails(r, DF_ERR_RETRY, "connect to Redis");
    DF_FREE char *config = df_strf("port %d\n", s.port);
    assert_true(redis_try(&s, *state, config, false));
    OK(r, NULL, "PING");
}

static void a_user_and_a_password_are_told(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "requirepass first\nuser runner on >second ~* +@all");
    struct df_redis_options o = to(&s);
    REDIS *none = redis_client(&o);
    assert_fails(none, DF_ERR_DENIED, "NOAUTH");
    o.password = "first";
    REDIS *by_password = redis_client(&o);
    OK(by_password, NULL, "PING");
    o.user = "runner";
    REDIS *wrong = redis_client(&o);
    assert_fails(wrong, DF_ERR_DENIED, "log in: Redis 127.0.0.1:");
    struct df_err err = {0};
    assert_int_equal(SAY(wrong, NULL, &err, "GET", "k"), -1);
    assert_null(strstr(err.message, "first"));
    o.password = "second";
    REDIS *by_user = redis_client(&o);
    DF_REDIS_ANSWER who = {0};
    OK(by_user, &who, "ACL", "WHOAMI");
    assert_string_equal(df_buf_str(&who.bytes), "runner");
}

static void a_password_where_none_is_wanted_is_a_refusal(void **state)
{
    REDIS_SERVER s = {0};
    redis_start(&s, *state, "");
    struct df_redis_options o = to(&s);
    o.password = "hunter2";
    REDIS *r = redis_client(&o);
    assert_fails(r, DF_ERR_DENIED, "without any password");
}

/* A server that takes connections and says nothing but these bytes, over and over. */
struct liar {
    int listener, port;
    const char *bytes;
    size_t repeat;
    pthread_t thread;
};

static void *lie(void *arg)
{
    const struct liar *l = arg;
    DF_CLOSE int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
    char in[4096];
    if (fd < 0 || recv(fd, in, sizeof(in), 0) <= 0)
        return NULL;
    for (size_t i = 0; i < l->repeat; i++)
        if (send(fd, l->bytes, strlen(l->bytes), MSG_NOSIGNAL) < 0)
            break;
    while (recv(fd, in, sizeof(in), 0) > 0) /* until the client goes away */
        ;
    return NULL;
}

static struct df_redis *client_of_liar(struct liar *l, const char *bytes, size_t repeat,
                                       int64_t timeout_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    *l = (struct liar){.bytes = bytes, .repeat = repeat};
    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(l->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(l->listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(l->listener, 1), 0);
    l->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&l->thread, NULL, lie, l), 0);
    const struct df_redis_options o = {.host = LOCAL, .port = l->port, .timeout_ms = timeout_ms};
    return redis_client(&o);
}

static void assert_lie_fails(const char *bytes, size_t repeat, enum df_err_class cls,
                             const char *said)
{
    struct liar l;
    bool is_waited_for = cls == DF_ERR_RETRY; /* no other lie ends by the clock */
    struct df_redis *r = client_of_liar(&l, bytes, repeat, is_waited_for ? 300 : 60000);
    assert_fails(r, cls, said);
    df_redis_free(r);
    assert_int_equal(pthread_join(l.thread, NULL), 0);
    (void)close(l.listener);
}

static void a_silent_or_lying_server_costs_neither_time_nor_memory(void **state)
{
    (void)state;
    assert_lie_fails("", 0, DF_ERR_RETRY, "did not answer within 300 ms");
    assert_lie_fails("$5\r\nab", 1, DF_ERR_RETRY, "did not answer within 300 ms");
    assert_lie_fails("HTTP/1.1 400 Bad Request\r\n", 1, DF_ERR_SYSTEM, "Protocol error");
    assert_lie_fails("*1000000000\r\n", 1, DF_ERR_SYSTEM, "out of range");
    char many[65537];
    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    memcpy(many, "$900000000\r\n", 12);
    assert_lie_fails(many, 2 * DF_LIMIT_REDIS_ANSWER / sizeof(many), DF_ERR_LIMIT, "more than");
}

/* ---- TLS ---- */

struct authority {
    struct df_buf key, certificate;
};

static void free_authority(struct authority *a)
{
    df_buf_free(&a->key);
    df_buf_free(&a->certificate);
}
#define AUTHORITY DF_CLEANUP(free_authority) struct authority

static void make_authority(struct authority *a)
{
    a->key = a->certificate = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_certificate_authority("redis test", &a->key, &a->certificate, NULL), 0);
}

/* Starts a server that speaks TLS only, with a certificate for this name. */
static void start_tls(struct redis_server *s, const char *dir, const struct authority *a,
                      const char *name, const char *config)
{
    DF_STRS struct df_strs names = {0};
    DF_BUF struct df_buf key = DF_BUF_INIT(DF_MIB), certificate = DF_BUF_INIT(DF_MIB);
    (void)df_strs_add(&names, name);
    assert_int_equal(df_certificate_issue(df_buf_str(&a->key), df_buf_str(&a->certificate), &names,
                                          &key, &certificate, NULL),
                     0);
    DF_FREE char *key_file = df_strf("%s/%s.key", dir, name),
                 *file = df_strf("%s/%s.crt", dir, name);
    assert_int_equal(df_fs_write(key_file, key.data, key.len, 0600, NULL), 0);
    assert_int_equal(df_fs_write(file, certificate.data, certificate.len, 0600, NULL), 0);
    for (int tries = 0; tries < 5; tries++) {
        s->port = redis_free_port();
        DF_FREE char *all = df_strf("port 0\ntls-port %d\ntls-cert-file %s\ntls-key-file %s\n"
                                    "tls-ca-cert-file %s\ntls-auth-clients no\nsave \"\"\n%s\n",
                                    s->port, file, key_file, file, config);
        if (redis_try(s, dir, all, false))
            return;
    }
    fail_msg("redis-server does not start: see %s/redis.log", dir);
}

static void tls_takes_an_authority_of_its_own_and_a_password(void **state)
{
    AUTHORITY a = {0};
    REDIS_SERVER s = {0};
    make_authority(&a);
    start_tls(&s, *state, &a, LOCAL, "requirepass secret");
    struct df_redis_options o = to(&s);
    o.tls = true;
    o.ca_pem = df_buf_str(&a.certificate);
    o.password = "secret";
    REDIS *r = redis_client(&o);
    OK(r, NULL, "SET", "k", "v");
    DF_FREE char *large = malloc(300001);
    memset(large, 'x', 300000);
    large[300000] = '\0';
    OK(r, NULL, "SET", "large", large); /* more than a record of TLS */
    DF_REDIS_ANSWER answer = {0};
    OK(r, &answer, "GET", "large");
    assert_string_equal(df_buf_str(&answer.bytes), large);
}

static void a_certificate_of_a_stranger_or_of_another_host_is_refused(void **state)
{
    AUTHORITY a = {0}, stranger = {0};
    REDIS_SERVER s = {0};
    make_authority(&a);
    make_authority(&stranger);
    start_tls(&s, *state, &a, "redis.example.com", "");
    struct df_redis_options o = to(&s);
    o.tls = true;
    o.ca_pem = df_buf_str(&a.certificate);
    REDIS *other_name = redis_client(&o);
    assert_fails(other_name, DF_ERR_DENIED, "neither for it nor for a configured host");
    o.ca_pem = df_buf_str(&stranger.certificate);
    REDIS *other_signer = redis_client(&o);
    assert_fails(other_signer, DF_ERR_DENIED, "is not trusted");
    o.ca_pem = NULL; /* the system's */
    REDIS *of_system = redis_client(&o);
    assert_fails(of_system, DF_ERR_DENIED, "is not trusted");
}

static void a_server_without_tls_is_not_spoken_to_in_the_clear(void **state)
{
    AUTHORITY a = {0};
    REDIS_SERVER s = {0};
    make_authority(&a);
    redis_start(&s, *state, "");
    struct df_redis_options o = to(&s);
    o.tls = true;
    o.timeout_ms = 300;
    o.ca_pem = df_buf_str(&a.certificate);
    REDIS *r = redis_client(&o);
    assert_fails(r, DF_ERR_RETRY, "does it speak TLS");
    struct df_err err = {0};
    struct df_redis *none = NULL;
    o.ca_pem = "nothing";
    assert_int_equal(df_redis_new(&o, &none, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
}

/* ---- Sentinel ---- */

/* A primary with a replica, and a sentinel of them. They have passwords: "data" and "watch". */
static void start_sentinel(struct redis_server *primary, struct redis_server *replica,
                           struct redis_server *sentinel, const char *dir)
{
    redis_start(primary, dir, "requirepass data\nmasterauth data\nrepl-diskless-sync-delay 0");
    DF_FREE char *follow =
        df_strf("requirepass data\nmasterauth data\nreplicaof " LOCAL " %d", primary->port);
    redis_start(replica, dir, follow);
    DF_FREE char *watch = df_strf("requirepass watch\nsentinel monitor tk " LOCAL " %d 1\n"
                                  "sentinel auth-pass tk data\n"
                                  "sentinel down-after-milliseconds tk 300\n"
                                  "sentinel failover-timeout tk 3000",
                                  primary->port);
    redis_start_sentinel(sentinel, dir, watch);
}

static void wait_for_replica(struct df_redis *sentinel)
{
    for (;;) {
        DF_REDIS_ANSWER list = {0};
        OK(sentinel, &list, "SENTINEL", "REPLICAS", "tk");
        if (list.integer == 1)
            return;
        redis_pause();
    }
}

static void the_primary_is_asked_of_sentinels_and_again_when_it_is_gone(void **state)
{
    REDIS_SERVER primary = {0}, replica = {0}, sentinel = {0};
    start_sentinel(&primary, &replica, &sentinel, *state);
    DF_STRS struct df_strs sentinels = {0};
    (void)df_strs_addf(&sentinels, LOCAL ":%d", redis_free_port()); /* nobody is there */
    (void)df_strs_addf(&sentinels, LOCAL ":%d", sentinel.port);
    struct df_redis_options watcher = to(&sentinel);
    watcher.password = "watch";
    REDIS *by_hand = redis_client(&watcher);
    OK(by_hand, NULL, "SENTINEL", "DEBUG", "INFO-PERIOD", "100", "PING-PERIOD",
       "100"); /* of 10 s */
    wait_for_replica(by_hand);
    const struct df_redis_options o = {.sentinels = &sentinels,
                                       .sentinel_primary = "tk",
                                       .sentinel_password = "watch",
                                       .password = "data",
                                       .timeout_ms = 5000};
    REDIS *r = redis_client(&o);
    OK(r, NULL, "SET", "k", "v");
    OK(r, NULL, "WAIT", "1", "5000");
    redis_stop(&primary);
    struct df_err err = {0};
    while (SAY(r, NULL, &err, "SET", "k", "w") < 0) {
        if (err.cls != DF_ERR_RETRY)
            fail_msg("%s", err.message);
        redis_pause();
    }
    struct df_redis_options direct = to(&replica);
    direct.password = "data";
    REDIS *promoted = redis_client(&direct);
    DF_REDIS_ANSWER value = {0};
    OK(promoted, &value, "GET", "k");
    assert_string_equal(df_buf_str(&value.bytes), "w");
}

static void a_sentinel_that_knows_no_primary_or_refuses_the_password_is_told(void **state)
{
    REDIS_SERVER sentinel = {0};
    redis_start_sentinel(&sentinel, *state, "requirepass watch");
    DF_STRS struct df_strs sentinels = {0};
    (void)df_strs_addf(&sentinels, LOCAL ":%d", sentinel.port);
    struct df_redis_options o = {.sentinels = &sentinels,
                                 .sentinel_primary = "other",
                                 .sentinel_password = "watch",
                                 .password = "data",
                                 .timeout_ms = 5000};
    REDIS *unknown = redis_client(&o);
    assert_fails(unknown, DF_ERR_RETRY, "knows no primary of the name other");
    o.sentinel_password = "guess";
    REDIS *wrong = redis_client(&o);
    assert_fails(wrong, DF_ERR_DENIED, "log in");
}

/* ---- Cluster ---- */

struct cluster {
    struct redis_server nodes[3];
    struct df_redis *each[3]; /* a client of one server */
};

static void stop_cluster(struct cluster *c)
{
    for (int i = 0; i < 3; i++) {
        df_redis_free(c->each[i]);
        redis_stop(&c->nodes[i]);
    }
}

static void start_cluster(struct cluster *c, const char *dir)
{
    static const char *const first[] = {"0", "5000", "10000"}, *const last[] = {"4999", "9999",
                                                                                "16383"};
    for (int i = 0; i < 3; i++) {
        DF_FREE char *config =
            df_strf("cluster-enabled yes\ncluster-config-file nodes-%d\ncluster-port %d\n"
                    "cluster-node-timeout 2000",
                    i, redis_free_port());
        redis_start(&c->nodes[i], dir, config);
        const struct df_redis_options o = to(&c->nodes[i]);
        c->each[i] = redis_client(&o);
        OK(c->each[i], NULL, "CLUSTER", "ADDSLOTSRANGE", first[i], last[i]);
        DF_FREE char *epoch = df_strf("%d", i + 1);
        OK(c->each[i], NULL, "CLUSTER", "SET-CONFIG-EPOCH", epoch);
    }
}

/* The port that a server's bus has. */
static char *bus_of(struct df_redis *r)
{
    DF_REDIS_ANSWER nodes = {0};
    OK(r, &nodes, "CLUSTER", "NODES");
    const char *at = strchr(df_buf_str(&nodes.bytes), '@');
    assert_non_null(at);
    return strndup(at + 1, strspn(at + 1, "0123456789"));
}

static void join_cluster(struct cluster *c)
{
    for (int i = 1; i < 3; i++) {
        DF_FREE char *port = df_strf("%d", c->nodes[i].port), *bus = bus_of(c->each[i]);
        OK(c->each[0], NULL, "CLUSTER", "MEET", LOCAL, port, bus);
    }
    for (int i = 0; i < 3; i++)
        for (;;) {
            DF_REDIS_ANSWER info = {0};
            OK(c->each[i], &info, "CLUSTER", "INFO");
            if (strstr(df_buf_str(&info.bytes), "cluster_state:ok") &&
                strstr(df_buf_str(&info.bytes), "cluster_known_nodes:3"))
                break;
            redis_pause();
        }
}

static char *id_of(struct df_redis *r)
{
    DF_REDIS_ANSWER id = {0};
    OK(r, &id, "CLUSTER", "MYID");
    return strdup(df_buf_str(&id.bytes));
}

static void follow_moved(struct df_redis *r, const struct cluster *c)
{
    static const char *const keys[] = {"a", "b", "c", "d", "{tag}1", "{tag}2"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        OK(r, NULL, "SET", keys[i], keys[i]);
        DF_FREE char *stream = df_strf("stream-%zu", i);
        OK(r, NULL, "XGROUP", "CREATE", stream, "g", "$", "MKSTREAM");
    }
    int used = 0;
    for (int i = 0; i < 3; i++) {
        DF_REDIS_ANSWER size = {0};
        OK(c->each[i], &size, "DBSIZE");
        used += size.integer > 0;
    }
    assert_true(used >= 2); /* or nothing was followed */
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        DF_REDIS_ANSWER value = {0};
        OK(r, &value, "GET", keys[i]);
        assert_string_equal(df_buf_str(&value.bytes), keys[i]);
    }
}

/* The slot of "foo" is 12182, of the third server: it gives it to the first. */
static void follow_ask(struct df_redis *r, const struct cluster *c)
{
    DF_FREE char *from = id_of(c->each[2]), *into = id_of(c->each[0]);
    OK(c->each[0], NULL, "CLUSTER", "SETSLOT", "12182", "IMPORTING", from);
    OK(c->each[2], NULL, "CLUSTER", "SETSLOT", "12182", "MIGRATING", into);
    const struct df_redis_arg push[] = {DF_REDIS_TEXT("RPUSH"), DF_REDIS_TEXT("foo"),
                                        DF_REDIS_TEXT("x")};
    const struct df_redis_arg *const all[] = {push, push, push};
    struct df_err err = {0};
    size_t done = 0;
    if (df_redis_pipeline(r, all, (const size_t[]){3, 3, 3}, 3, &done, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++)
        OK(c->each[i], NULL, "CLUSTER", "SETSLOT", "12182", "NODE", into);
    DF_REDIS_ANSWER length = {0};
    OK(r, &length, "LLEN", "foo"); /* by MOVED now */
    assert_int_equal(length.integer, 3);
    DF_REDIS_ANSWER there = {0};
    OK(c->each[0], &there, "LLEN", "foo");
    assert_int_equal(there.integer, 3);
}

static void a_cluster_is_followed_by_moved_and_ask_and_past_a_dead_server(void **state)
{
    DF_CLEANUP(stop_cluster) struct cluster c = {0};
    start_cluster(&c, *state);
    join_cluster(&c);
    DF_STRS struct df_strs nodes = {0};
    (void)df_strs_addf(&nodes, LOCAL ":%d", redis_free_port()); /* nobody is there */
    (void)df_strs_addf(&nodes, LOCAL ":%d", c.nodes[1].port);
    const struct df_redis_options o = {.cluster_nodes = &nodes, .timeout_ms = 5000};
    REDIS *r = redis_client(&o);
    follow_moved(r, &c);
    follow_ask(r, &c);
    REDIS *impatient = redis_client(&(struct df_redis_options){
        .cluster_nodes = &nodes, .timeout_ms = 5000, .max_redirects = 1});
    OK(impatient, NULL, "SET", "foo2", "x"); /* one is enough for MOVED */
    redis_stop(&c.nodes[2]);
    struct df_err err = {0};
    assert_int_equal(SAY(r, NULL, &err, "GET", "a"), -1); /* 15495: the third's */
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

static void a_bad_address_is_refused_before_anything_is_sent(void **state)
{
    (void)state;
    static const char *const bad[] = {"redis", "redis:", ":6379", "redis:0", "redis:65536", ""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_STRS struct df_strs nodes = {0};
        (void)df_strs_add(&nodes, bad[i]);
        struct df_redis *r = NULL;
        struct df_err err = {0};
        const struct df_redis_options o = {.cluster_nodes = &nodes};
        assert_int_equal(df_redis_new(&o, &r, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void more_servers_than_the_limit_are_refused(void **state)
{
    (void)state;
    DF_STRS struct df_strs nodes = {0};
    for (int i = 0; i <= DF_LIMIT_REDIS_NODES; i++)
        (void)df_strs_addf(&nodes, "node-%d:6379", i);
    struct df_redis *r = NULL;
    struct df_err err = {0};
    const struct df_redis_options o = {.cluster_nodes = &nodes};
    assert_int_equal(df_redis_new(&o, &r, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    static const struct CMUnitTest tests[] = {
        scratch_test(commands_carry_bytes_and_answers_have_kinds),
        scratch_test(a_refusal_has_the_servers_words_but_not_the_arguments),
        scratch_test(a_pipeline_says_how_much_of_it_was_done),
        scratch_test(a_client_connects_again_after_its_server_was_away),
        scratch_test(a_user_and_a_password_are_told),
        scratch_test(a_password_where_none_is_wanted_is_a_refusal),
        cmocka_unit_test(a_silent_or_lying_server_costs_neither_time_nor_memory),
        scratch_test(tls_takes_an_authority_of_its_own_and_a_password),
        scratch_test(a_certificate_of_a_stranger_or_of_another_host_is_refused),
        scratch_test(a_server_without_tls_is_not_spoken_to_in_the_clear),
        scratch_test(the_primary_is_asked_of_sentinels_and_again_when_it_is_gone),
        scratch_test(a_sentinel_that_knows_no_primary_or_refuses_the_password_is_told),
        scratch_test(a_cluster_is_followed_by_moved_and_ask_and_past_a_dead_server),
        cmocka_unit_test(a_bad_address_is_refused_before_anything_is_sent),
        cmocka_unit_test(more_servers_than_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
