/* hiredis names what banned.h forbids from then on. */
#include <hiredis/hiredis.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/terrakube/jdk.h"
#include "common/terrakube/log_read.h"
#include "common/terrakube/log_stream.h"
#include "common/terrakube/wire.h"
#include "tests/unit/heard.h"
#include "tests/unit/redis_server.h"
#include "tests/unit/scratch.h"

#define STEP "0f8a5b8e-3d1c-4f53-9a31-8b5e8f0c2a10"
#define RETRY_MS 20000

static void free_reply(redisReply **r)
{
    freeReplyObject(*r);
}
#define REPLY DF_CLEANUP(free_reply) redisReply

/* One job with its Redis, its stream, and a connection that looks at what is there. */
struct world {
    struct redis_server redis;
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_terrakube_stream *stream;
    redisContext *eye;
    struct df_buf key;                       /* the job's, in Java's form */
    const struct df_wait_listener *listener; /* or NULL */
};

static void close_world(struct world *w)
{
    df_terrakube_stream_free(w->stream);
    if (w->eye)
        redisFree(w->eye);
    redis_stop(&w->redis);
    df_buf_free(&w->key);
}
#define WORLD DF_CLEANUP(close_world) struct world

static struct df_buf java(const char *text)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_add(&b, text, strlen(text), NULL), 0);
    return b;
}

static void look(struct world *w)
{
    if (w->eye)
        redisFree(w->eye);
    w->eye = redisConnect("127.0.0.1", w->redis.port);
    assert_int_equal(w->eye->err, 0);
}

static void start_stream(struct world *w, const char *job, const char *step)
{
    struct df_err err = {0};
    w->payload = (struct df_terrakube_payload){.job = job, .step = step};
    df_buf_free(&w->key);
    w->key = java(job);
    if (df_terrakube_stream_new(&w->settings, &w->payload, "a pod", w->listener, &w->stream, &err) <
        0)
        fail_msg("%s", err.message);
}

static void open_world(struct world *w, const char *dir)
{
    redis_start(&w->redis, dir, "");
    look(w);
    static char host[] = "127.0.0.1";
    w->settings.redis.host = host;
    w->settings.redis.port = w->redis.port;
    w->settings.redis.timeout_ms = 5000;
}

static void flush(struct world *w)
{
    struct df_err why = {0};
    if (!df_terrakube_stream_flush(w->stream, 60 * RETRY_MS, &why))
        fail_msg("%s", why.message);
}

static redisReply *entries_of(struct world *w, const struct df_buf *key)
{
    redisReply *r = redisCommand(w->eye, "XRANGE %b - +", key->data, key->len);
    assert_non_null(r);
    assert_int_equal(r->type, REDIS_REPLY_ARRAY);
    return r;
}

/* The text behind a field of the entry. The caller frees. */
static char *value_of(const redisReply *entry, const char *field)
{
    const redisReply *fields = entry->element[1];
    DF_BUF struct df_buf name = java(field);
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        const redisReply *f = fields->element[i], *v = fields->element[i + 1];
        DF_BUF struct df_buf text = DF_BUF_INIT(4 * DF_MIB);
        if (f->len != name.len || memcmp(f->str, name.data, f->len) != 0)
            continue;
        assert_int_equal(df_jdk_read(v->str, v->len, &text, NULL), 0);
        return df_buf_take(&text);
    }
    fail_msg("no field %s", field);
    return NULL;
}

static void assert_lines(struct world *w, const char *const *lines, size_t n)
{
    REPLY *r = entries_of(w, &w->key);
    for (size_t i = 0; i < n && i < r->elements; i++) {
        DF_FREE char *text = value_of(r->element[i], "output");
        DF_FREE char *number = value_of(r->element[i], "lineNumber");
        assert_string_equal(text, lines[i]);
        assert_int_equal(strtol(number, NULL, 10), i + 1);
    }
    assert_int_equal(r->elements, n);
}
#define ASSERT_LINES(w, ...)                                                                       \
    assert_lines((w), (const char *const[]){__VA_ARGS__},                                          \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- what the Java executor was seen to send ---- */

/* "\xac\r\n" as Python writes bytes. */
static void add_unescaped(struct df_buf *b, const char *p, size_t n)
{
    for (const char *end = p + n; p < end; p++) {
        unsigned c = (unsigned char)*p;
        if (c == '\\' && *++p == 'x' && sscanf(p + 1, "%2x", &c) == 1)
            p += 2;
        else if (c == '\\')
            c = *p == 'r' ? '\r' : *p == 'n' ? '\n' : '\t';
        (void)df_buf_addc(b, (char)c);
    }
}

/* The commands of one kind that the executor sent in the recording. */
struct recording {
    redisReply *commands[128];
    size_t len;
};

static void free_recording(struct recording *r)
{
    for (size_t i = 0; i < r->len; i++)
        freeReplyObject(r->commands[i]);
}
#define RECORDING DF_CLEANUP(free_recording) struct recording

static void take_commands(redisReader *reader, const char *verb, struct recording *r)
{
    void *reply = NULL;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        redisReply *command = reply;
        if (strcmp(command->element[0]->str, verb) == 0 && r->len < DF_ARRAY_SIZE(r->commands))
            r->commands[r->len++] = command;
        else
            freeReplyObject(command);
    }
}

static void read_recording(const char *verb, struct recording *r)
{
    DF_BUF struct df_buf file = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read("tests/fixtures/terrakube/redis-apply.txt", &file, NULL), 0);
    redisReader *reader = redisReaderCreate();
    for (const char *line = df_buf_str(&file); *line;) {
        size_t n = strcspn(line, "\n");
        const char *sent = memmem(line, n, " > ", 3);
        if (sent) {
            DF_BUF struct df_buf bytes = DF_BUF_INIT(DF_MIB);
            add_unescaped(&bytes, sent + 3, n - (size_t)(sent + 3 - line));
            assert_int_equal(redisReaderFeed(reader, bytes.data, bytes.len), REDIS_OK);
            take_commands(reader, verb, r);
        }
        line += n + (line[n] != '\0');
    }
    redisReaderFree(reader);
    assert_true(r->len > 0);
}

static char *text_of(const redisReply *argument)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_jdk_read(argument->str, argument->len, &text, NULL), 0);
    return df_buf_take(&text);
}

static void assert_same_bytes(const redisReply *a, const redisReply *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->str, b->str, a->len);
}

/* Each entry has the fields of the recorded XADD, in their order. */
static void assert_same_entries(struct world *w, const struct recording *recorded)
{
    REPLY *seen = redisCommand(w->eye, "XRANGE %b - +", recorded->commands[0]->element[1]->str,
                               recorded->commands[0]->element[1]->len);
    assert_int_equal(seen->elements, recorded->len);
    for (size_t i = 0; i < seen->elements; i++) {
        const redisReply *fields = seen->element[i]->element[1];
        assert_int_equal(fields->elements + 3, recorded->commands[i]->elements);
        for (size_t k = 0; k < fields->elements; k++)
            assert_same_bytes(fields->element[k], recorded->commands[i]->element[k + 3]);
    }
}

static void a_recorded_apply_gives_the_same_keys_fields_and_values(void **state)
{
    WORLD w = {0};
    RECORDING lines = {0}, groups = {0};
    read_recording("XADD", &lines);
    read_recording("XGROUP", &groups);
    DF_FREE char *job = text_of(lines.commands[0]->element[4]);
    DF_FREE char *step = text_of(lines.commands[0]->element[6]);
    open_world(&w, *state);
    start_stream(&w, job, step);
    df_terrakube_stream_open(w.stream);
    for (size_t i = 0; i < lines.len; i++) {
        DF_FREE char *text = text_of(lines.commands[i]->element[10]);
        df_terrakube_stream_entry(w.stream, text, strlen(text));
    }
    flush(&w);
    df_terrakube_stream_free(DF_TAKE(w.stream)); /* before job and step, which it borrows */
    assert_same_entries(&w, &lines);
    REPLY *seen = redisCommand(w.eye, "XINFO GROUPS %b", w.key.data, w.key.len);
    assert_int_equal(seen->elements, groups.len);
    for (size_t i = 0; i < groups.len; i++) {
        assert_same_bytes(groups.commands[i]->element[2], lines.commands[0]->element[1]);
        assert_same_bytes(seen->element[i]->element[1], groups.commands[i]->element[3]);
    }
}

/* ---- lines ---- */

static void lf_and_a_lone_cr_end_a_line_and_the_last_one_needs_neither(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    static const char *const parts[] = {"one\ntw", "o\r\nthree\r", "\nfour\rfive\n",
                                        "\n\r\r\nlast"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++)
        df_terrakube_stream_add(w.stream, parts[i], strlen(parts[i]));
    flush(&w);
    df_terrakube_stream_add(w.stream, "begun", 5);
    df_terrakube_stream_entry(w.stream, "a\nbanner", 8);
    flush(&w);
    ASSERT_LINES(&w, "one", "two", "three", "four", "five", "", "", "", "last", "begun",
                 "a\nbanner");
}

static void a_line_beyond_the_limit_is_cut(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    size_t n = DF_LIMIT_TERRAKUBE_LINE + 3;
    DF_FREE char *line = malloc(n);
    assert_non_null(line);
    memset(line, 'x', n);
    df_terrakube_stream_add(w.stream, line, n);
    flush(&w);
    REPLY *r = entries_of(&w, &w.key);
    assert_int_equal(r->elements, 2);
    DF_FREE char *first = value_of(r->element[0], "output"),
                 *rest = value_of(r->element[1], "output");
    assert_int_equal(strlen(first), DF_LIMIT_TERRAKUBE_LINE);
    assert_string_equal(rest, "xxx");
}

static void nothing_is_sent_before_the_stream_is_open(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_add(w.stream, "early\n", 6);
    assert_false(df_terrakube_stream_flush(w.stream, RETRY_MS, NULL)); /* at once */
    REPLY *none = redisCommand(w.eye, "EXISTS %b", w.key.data, w.key.len);
    assert_int_equal(none->integer, 0);
    df_terrakube_stream_open(w.stream);
    flush(&w);
    ASSERT_LINES(&w, "early");
}

static void what_does_not_fit_is_counted_where_it_is_missing(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    char line[1024];
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    const size_t more = DF_LIMIT_TERRAKUBE_LOG_QUEUE / sizeof(line) + 100;
    for (size_t i = 0; i < more; i++)
        df_terrakube_stream_add(w.stream, line, sizeof(line));
    df_terrakube_stream_open(w.stream);
    flush(&w);
    df_terrakube_stream_add(w.stream, "later\n", 6);
    flush(&w);
    REPLY *r = entries_of(&w, &w.key);
    assert_true(r->elements < more);
    DF_FREE char *said = value_of(r->element[r->elements - 2], "output");
    DF_FREE char *last = value_of(r->element[r->elements - 1], "output");
    size_t missing = 0;
    assert_int_equal(sscanf(said, "[%zu lines are missing here", &missing), 1);
    assert_int_equal(missing + r->elements - 2, more);
    assert_string_equal(last, "later");
}

static void structured_output_goes_to_a_stream_of_its_own(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\n", 4);
    df_terrakube_stream_context(w.stream, "{\"phase\":\"plan\"}");
    df_terrakube_stream_add(w.stream, "two\n", 4);
    flush(&w);
    ASSERT_LINES(&w, "one", "two");
    DF_BUF struct df_buf key = java("7-context");
    REPLY *r = entries_of(&w, &key);
    assert_int_equal(r->elements, 1);
    assert_int_equal(r->element[0]->element[1]->elements, 6); /* no number */
    DF_FREE char *output = value_of(r->element[0], "output"),
                 *step = value_of(r->element[0], "stepId");
    assert_string_equal(output, "{\"phase\":\"plan\"}");
    assert_string_equal(step, STEP);
}

/* ---- read back ---- */

static char *read_back(struct world *w, const char *dir, size_t max)
{
    DF_FREE char *path = df_fs_join(dir, "read");
    DF_BUF struct df_buf text = DF_BUF_INIT(8 * DF_MIB);
    struct df_redis *redis = NULL;
    struct df_err err = {0};
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    if (df_terrakube_wire_new(&w->settings, &redis, &err) < 0 ||
        df_terrakube_log_read(redis, &w->payload, max, fd, &err) < 0)
        fail_msg("%s", err.message);
    df_redis_free(redis);
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    (void)df_buf_adds(&text, "");
    return df_buf_take(&text);
}

static void a_stream_is_read_back_line_by_line_without_those_of_other_steps(void **state)
{
    WORLD w = {0};
    DF_BUF struct df_buf said = DF_BUF_INIT(DF_MIB);
    open_world(&w, *state);
    start_stream(&w, "7", "00000000-0000-4000-8000-000000000000");
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "of the plan\n", 12);
    flush(&w);
    df_terrakube_stream_free(DF_TAKE(w.stream));
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    for (int i = 0; i < 3 * DF_LIMIT_TERRAKUBE_RESCUE_BATCH; i++)
        (void)df_buf_addf(&said, "line %d \xc3\xa9\n", i);
    df_terrakube_stream_add(w.stream, said.data, said.len);
    flush(&w);
    DF_FREE char *all = read_back(&w, *state, DF_LIMIT_TERRAKUBE_RESCUE);
    assert_string_equal(all, df_buf_str(&said));
    REPLY *added = redisCommand(w.eye, "XADD %b * unknown field", w.key.data, w.key.len);
    assert_int_equal(added->type, REDIS_REPLY_STRING);
    DF_FREE char *again = read_back(&w, *state, DF_LIMIT_TERRAKUBE_RESCUE);
    assert_string_equal(again, all);
}

static void what_is_read_back_has_a_limit_and_says_so(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    DF_FREE char *longest = malloc(DF_LIMIT_TERRAKUBE_LINE);
    assert_non_null(longest);
    memset(longest, 0, DF_LIMIT_TERRAKUBE_LINE); /* twice as long in Java's form */
    df_terrakube_stream_add(w.stream, "one\n", 4);
    df_terrakube_stream_entry(w.stream, longest, DF_LIMIT_TERRAKUBE_LINE);
    df_terrakube_stream_add(w.stream, "two\n", 4);
    flush(&w);
    DF_FREE char *cut = read_back(&w, *state, DF_LIMIT_TERRAKUBE_LINE);
    assert_string_equal(cut, "one\n[more lines of this step were in Redis than are saved]\n");
    DF_FREE char *all = read_back(&w, *state, DF_LIMIT_TERRAKUBE_RESCUE);
    assert_string_equal(all + 4 + DF_LIMIT_TERRAKUBE_LINE, "\ntwo\n");
}

/* ---- a Redis that is away, slow, or closed ---- */

static void lines_wait_for_a_redis_that_is_away_and_the_caller_does_not(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    redisFree(DF_TAKE(w.eye));
    redis_stop(&w.redis);
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\ntwo\n", 8);
    struct df_err why = {0};
    assert_false(df_terrakube_stream_flush(w.stream, 50, &why));
    assert_int_equal(why.cls, DF_ERR_RETRY);
    DF_FREE char *config = df_strf("port %d\nsave \"\"\n", w.redis.port);
    assert_true(redis_try(&w.redis, *state, config, false));
    look(&w);
    df_terrakube_stream_add(w.stream, "three\n", 6);
    flush(&w);
    ASSERT_LINES(&w, "one", "two", "three");
}

static void a_redis_that_does_not_answer_holds_up_nobody_but_the_thread(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    w.settings.redis.timeout_ms = 60000;
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\n", 4);
    flush(&w);
    assert_int_equal(kill(w.redis.pid, SIGSTOP), 0);
    for (int i = 0; i < 1000; i++)
        df_terrakube_stream_add(w.stream, "more\n", 5);
    assert_false(df_terrakube_stream_flush(w.stream, 10, NULL));
    assert_int_equal(kill(w.redis.pid, SIGCONT), 0);
    flush(&w);
    REPLY *r = entries_of(&w, &w.key);
    assert_int_equal(r->elements, 1001);
}

static void wait_until(const int *count, int n)
{
    for (int64_t until = df_mono_ms() + RETRY_MS; df_mono_ms() < until; redis_pause())
        if (__atomic_load_n(count, __ATOMIC_ACQUIRE) >= n)
            return;
    fail_msg("it was not told");
}

static void a_wrong_password_is_told_without_waiting_for_it_to_change(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    freeReplyObject(redisCommand(w.eye, "CONFIG SET requirepass right"));
    static char wrong[] = "wrong";
    w.settings.redis.password = wrong;
    struct heard h = {.what = "Redis"};
    const struct df_wait_listener listener = listen_to(&h);
    w.listener = &listener;
    start_stream(&w, "7", STEP);
    wait_until(&h.begun, 1);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\n", 4);
    struct df_err why = {0};
    assert_false(df_terrakube_stream_flush(w.stream, INT32_MAX, &why)); /* or the test hangs */
    assert_int_equal(why.cls, DF_ERR_DENIED);
    assert_null(strstr(why.message, "wrong"));
    df_terrakube_stream_free(DF_TAKE(w.stream));
    assert_int_equal(h.begun, 1);
    assert_int_equal(h.ms, 0);
    assert_int_equal(h.why.cls, DF_ERR_DENIED);
}

/* The key of the job is a string: what it refuses must not hold up the context behind it. */
static void what_redis_refuses_for_good_is_left_out(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    DF_BUF struct df_buf key = java("7"), context = java("7-context");
    freeReplyObject(redisCommand(w.eye, "SET %b x", key.data, key.len));
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\ntwo\n", 8);
    df_terrakube_stream_context(w.stream, "{}");
    for (int64_t until = df_mono_ms() + RETRY_MS; df_mono_ms() < until; redis_pause()) {
        REPLY *n = redisCommand(w.eye, "XLEN %b", context.data, context.len);
        if (n->integer == 1)
            break;
    }
    REPLY *n = redisCommand(w.eye, "XLEN %b", context.data, context.len);
    assert_int_equal(n->integer, 1);
    assert_false(df_terrakube_stream_flush(w.stream, 50, NULL)); /* two lines are not there */
}

/* ---- the heartbeat ---- */

static long long heartbeat_life(struct world *w)
{
    DF_BUF struct df_buf key = java("executor-job-heartbeat:7"), one = java("1");
    REPLY *value = redisCommand(w->eye, "GET %b", key.data, key.len);
    if (value->type == REDIS_REPLY_NIL)
        return 0;
    assert_int_equal(value->len, one.len);
    assert_memory_equal(value->str, one.data, one.len);
    REPLY *life = redisCommand(w->eye, "TTL %b", key.data, key.len);
    return life->integer;
}

static void the_heartbeat_is_there_at_once_lives_45_seconds_and_goes_with_the_step(void **state)
{
    WORLD w = {0};
    open_world(&w, *state);
    start_stream(&w, "7", STEP);
    long long life = 0;
    for (int64_t until = df_mono_ms() + RETRY_MS; !life && df_mono_ms() < until; redis_pause())
        life = heartbeat_life(&w);
    assert_true(life > 0 && life <= 45);
    df_terrakube_stream_free(DF_TAKE(w.stream));
    assert_int_equal(heartbeat_life(&w), 0);
}

static void the_heartbeat_waits_for_a_redis_that_is_away_and_says_so_once(void **state)
{
    WORLD w = {0};
    struct heard h = {.what = "Redis"};
    const struct df_wait_listener listener = listen_to(&h);
    w.listener = &listener;
    open_world(&w, *state);
    redisFree(DF_TAKE(w.eye));
    redis_stop(&w.redis);
    start_stream(&w, "7", STEP);
    wait_until(&h.begun, 1);
    DF_FREE char *config = df_strf("port %d\nsave \"\"\n", w.redis.port);
    assert_true(redis_try(&w.redis, *state, config, false));
    look(&w);
    long long life = 0;
    for (int64_t until = df_mono_ms() + RETRY_MS; !life && df_mono_ms() < until; redis_pause())
        life = heartbeat_life(&w);
    assert_true(life > 0);
    wait_until(&h.over, 1);
    df_terrakube_stream_free(DF_TAKE(w.stream));
    assert_int_equal(h.begun, 1);
    assert_int_equal(h.over, 1);
    assert_true(h.ms == INT64_MAX);
}

/* ---- through the API ---- */

/* Takes requests one after the other, answers "204 No Content" (the first POST of lines: 503), and
 * keeps their bodies. */
struct api {
    int listener, port;
    pthread_t thread;
    size_t set_up, refused;
    struct df_buf lines; /* the bodies of POST /logs that were taken, each with a newline */
};

static size_t read_request(int fd, struct df_buf *b)
{
    char part[65536];
    for (;;) {
        const char *end = strstr(df_buf_str(b), "\r\n\r\n");
        const char *length = end ? strcasestr(df_buf_str(b), "content-length:") : NULL;
        size_t body = length ? strtoul(length + 15, NULL, 10) : 0;
        if (end && b->len >= (size_t)(end + 4 - b->data) + body)
            return (size_t)(end + 4 - b->data);
        ssize_t n = recv(fd, part, sizeof(part), 0);
        if (n <= 0)
            return 0;
        (void)df_buf_add(b, part, (size_t)n);
    }
}

static void answer_request(struct api *a, int fd)
{
    DF_BUF struct df_buf request = DF_BUF_INIT(4 * DF_MIB);
    size_t body = read_request(fd, &request);
    bool is_setup = strstr(df_buf_str(&request), "POST /logs/7/setup-consumer-groups ") != NULL;
    bool is_lines = strstr(df_buf_str(&request), "POST /logs ") != NULL;
    bool refuses = is_lines && !a->refused;
    a->set_up += is_setup;
    a->refused += refuses;
    if (is_lines && !refuses)
        (void)df_buf_addf(&a->lines, "%s\n", request.data + body);
    const char *answer = refuses
                             ? "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                             : "HTTP/1.1 204 None\r\nConnection: close\r\n\r\n";
    (void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

static void *serve_api(void *arg)
{
    struct api *a = arg;
    for (;;) {
        DF_CLOSE int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        answer_request(a, fd);
    }
}

static void start_api(struct api *a)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    a->lines = DF_BUF_INIT(16 * DF_MIB);
    a->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(a->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(a->listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(a->listener, 8), 0);
    a->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&a->thread, NULL, serve_api, a), 0);
}

static void stop_api(struct api *a)
{
    (void)shutdown(a->listener, SHUT_RDWR);
    (void)pthread_join(a->thread, NULL);
    (void)close(a->listener);
}

static void assert_api_lines(const struct api *a)
{
    static const char *const expected[] = {"one", "nul\xef\xbf\xbd", "two"};
    size_t seen = 0;
    for (const char *p = df_buf_str(&a->lines); *p;) {
        size_t n = strcspn(p, "\n");
        DF_JSON cJSON *body = NULL;
        assert_int_equal(df_json_parse(p, n, &body, NULL), 0);
        const cJSON *line = NULL;
        cJSON_ArrayForEach (line, df_json_at(body, "data")) {
            assert_true(seen < DF_ARRAY_SIZE(expected));
            assert_string_equal(df_json_str(line, "output"), expected[seen++]);
            assert_int_equal(df_json_int(line, "lineNumber", 0), seen);
            assert_int_equal(df_json_int(line, "jobId", 0), 7);
            assert_string_equal(df_json_str(line, "stepId"), STEP);
        }
        p += n + 1;
    }
    assert_int_equal(seen, DF_ARRAY_SIZE(expected));
}

static void with_log_via_api_lines_go_there_and_the_last_ones_too(void **state)
{
    (void)state;
    WORLD w = {0};
    struct api a = {0};
    start_api(&a);
    DF_FREE char *url = df_strf("http://127.0.0.1:%d", a.port);
    w.settings.api_url = w.settings.public_url = url;
    static char secret[] = "dGVzdC1vbmx5LWludGVybmFsLXNlY3JldC0wMTIzNDU2Nzg5YWI=";
    w.settings.internal_secret = secret;
    w.settings.log_via_api = true;
    static char host[] = "127.0.0.1"; /* the chart names a Redis; nobody is there */
    w.settings.redis.host = host;
    w.settings.redis.port = redis_free_port();
    w.settings.redis.timeout_ms = 5000;
    start_stream(&w, "7", STEP);
    df_terrakube_stream_open(w.stream);
    df_terrakube_stream_add(w.stream, "one\nnul\0\n", 9);
    df_terrakube_stream_context(w.stream, "{}"); /* nobody takes it */
    df_terrakube_stream_add(w.stream, "two", 3);
    flush(&w);
    df_terrakube_stream_free(DF_TAKE(w.stream));
    stop_api(&a);
    assert_int_equal(a.set_up, 1);
    assert_int_equal(a.refused, 1);
    assert_api_lines(&a);
    df_buf_free(&a.lines);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    static const struct CMUnitTest tests[] = {
        scratch_test(a_recorded_apply_gives_the_same_keys_fields_and_values),
        scratch_test(lf_and_a_lone_cr_end_a_line_and_the_last_one_needs_neither),
        scratch_test(a_line_beyond_the_limit_is_cut),
        scratch_test(nothing_is_sent_before_the_stream_is_open),
        scratch_test(what_does_not_fit_is_counted_where_it_is_missing),
        scratch_test(structured_output_goes_to_a_stream_of_its_own),
        scratch_test(a_stream_is_read_back_line_by_line_without_those_of_other_steps),
        scratch_test(what_is_read_back_has_a_limit_and_says_so),
        scratch_test(lines_wait_for_a_redis_that_is_away_and_the_caller_does_not),
        scratch_test(a_redis_that_does_not_answer_holds_up_nobody_but_the_thread),
        scratch_test(a_wrong_password_is_told_without_waiting_for_it_to_change),
        scratch_test(what_redis_refuses_for_good_is_left_out),
        scratch_test(the_heartbeat_is_there_at_once_lives_45_seconds_and_goes_with_the_step),
        scratch_test(the_heartbeat_waits_for_a_redis_that_is_away_and_says_so_once),
        cmocka_unit_test(with_log_via_api_lines_go_there_and_the_last_ones_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
