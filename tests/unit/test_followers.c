/* Those who follow a run over HTTP: what they are told, and what becomes of them. */
#include "spawner/http/connections.h"
#include "tests/unit/api_world.h"

#define RUN                                                                                        \
    "{\"apiVersion\":\"" DF_API_VERSION "\",\"kind\":\"Run\",\"metadata\":{\"name\":\"net-1\"},"   \
    "\"spec\":{\"executorRef\":{\"name\":\"net\"},\"action\":\"provision\"},"                      \
    "\"status\":{\"phase\":\"Running\"}}"

static void make_run(const struct world *w)
{
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_json_parse(RUN, strlen(RUN), &doc, NULL), 0);
    assert_int_equal(df_store_create(w->s.store, DF_KIND_RUN, doc, NULL, NULL), 0);
}

static int set_phase(cJSON *doc, void *arg, struct df_err *err)
{
    return df_json_set_str(df_json_object_at(doc, "status"), "phase", arg, err);
}

static void change_phase(const struct world *w, const char *phase)
{
    char copy[32];
    (void)snprintf(copy, sizeof(copy), "%s", phase);
    assert_int_equal(df_store_modify(w->s.store, DF_KIND_RUN, "net-1", set_phase, copy, NULL, NULL),
                     0);
}

static void a_watcher_sees_the_run_its_changes_and_its_end(void **state)
{
    struct world *w = *state;
    make_run(w);
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
    assert_true(hear(fd, &b, "\"phase\":\"Running\""));
    assert_non_null(strstr(df_buf_str(&b), "event: run\n"));
    change_phase(w, "WaitingApproval");
    assert_true(hear(fd, &b, "\"phase\":\"WaitingApproval\""));
    change_phase(w, "Succeeded");
    assert_true(hear(fd, &b, "event: end\ndata: {\"phase\":\"Succeeded\"}\n\n"));
    hear_all(fd, &b); /* and the connection is closed */
}

/* A workflow is nobody's step, whatever its name is; and one of a run that had the name before is
 * not this run's. */
static void a_task_that_only_has_the_name_of_a_step_is_not_shown_with_the_run(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *of;
    } tasks[] = {
        {"net-1-plan", ""},
        {"net-1-apply",
         "\"runRef\":{\"name\":\"net-1\"},\"executorRef\":{\"name\":\"net\",\"uid\":\"old\"},"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(tasks); i++) {
        DF_JSON cJSON *doc = NULL;
        DF_FREE char *text = df_strf("{\"apiVersion\":\"" DF_API_VERSION
                                     "\",\"kind\":\"TaskAction\",\"metadata\":{\"name\":\"%s\"},"
                                     "\"spec\":{%s\"action\":\"plan\"},\"status\":{}}",
                                     tasks[i].name, tasks[i].of);
        assert_int_equal(df_json_parse(text, strlen(text), &doc, NULL), 0);
        assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, doc, NULL, NULL), 0);
    }
    make_run(w);
    change_phase(w, "Failed");
    REPLY struct reply watch = get(w, "/v1/runs/net-1/watch", "");
    assert_non_null(strstr(watch.body, "event: run\n"));
    assert_null(strstr(watch.body, "event: taskaction\n"));
    REPLY struct reply log = get(w, "/v1/runs/net-1/log?follow=true", "");
    assert_non_null(strstr(log.body, "event: end\n"));
    assert_null(strstr(log.body, "event: complete\n"));
}

static void the_log_of_a_final_run_ends_at_once(void **state)
{
    struct world *w = *state;
    make_run(w);
    change_phase(w, "Failed");
    REPLY struct reply r = get(w, "/v1/runs/net-1/log?follow=true", "");
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "event: end\ndata: {\"phase\":\"Failed\"}"));
}

static int set_unknown_action(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(df_json_object_at(doc, "spec"), "action", "dance", err);
}

static void a_run_of_an_unknown_action_is_followed_to_its_end_and_has_no_steps(void **state)
{
    struct world *w = *state;
    make_run(w);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_RUN, "net-1", set_unknown_action, NULL, NULL, NULL), 0);
    REPLY struct reply step = get(w, "/v1/runs/net-1/log?step=plan", "");
    assert_int_equal(step.status, 400);
    assert_non_null(strstr(step.body, "run net-1 has no steps"));
    REPLY struct reply plain = get(w, "/v1/runs/net-1/log", "");
    assert_int_equal(plain.status, 200);
    DF_CLOSE int watch = dial(w), log = dial(w);
    DF_BUF struct df_buf seen = DF_BUF_INIT(DF_MIB), heard = DF_BUF_INIT(DF_MIB);
    say(watch, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
    say(log, "GET /v1/runs/net-1/log?follow=true HTTP/1.1\r\n" HEAD "\r\n");
    assert_true(hear(watch, &seen, "event: run\n"));
    assert_true(hear(log, &heard, "\r\n\r\n"));
    change_phase(w, "Failed");
    assert_true(hear(watch, &seen, "event: end\ndata: {\"phase\":\"Failed\"}"));
    assert_true(hear(log, &heard, "event: end\ndata: {\"phase\":\"Failed\"}"));
}

static void a_deleted_run_ends_its_watchers(void **state)
{
    struct world *w = *state;
    make_run(w);
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
    assert_true(hear(fd, &b, "event: run\n"));
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_RUN, "net-1", NULL, NULL), 0);
    assert_true(hear(fd, &b, "{\"phase\":\"Deleted\"}"));
}

static void a_run_that_was_replaced_by_another_of_its_name_ends_its_watchers(void **state)
{
    struct world *w = *state;
    make_run(w);
    for (int i = 0; i < 20; i++) {
        DF_CLOSE int fd = dial(w);
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        say(fd, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
        assert_true(hear(fd, &b, "event: run\n"));
        assert_int_equal(df_store_remove(w->s.store, DF_KIND_RUN, "net-1", NULL, NULL), 0);
        make_run(w);
        assert_true(hear(fd, &b, "{\"phase\":\"Deleted\"}"));
    }
}

static void followers_are_told_when_the_server_stops(void **state)
{
    struct world *w = *state;
    make_run(w);
    DF_CLOSE int watch = dial(w);
    DF_CLOSE int log = dial(w);
    DF_CLOSE int idle = dial(w);
    DF_BUF struct df_buf a = DF_BUF_INIT(DF_MIB), b = DF_BUF_INIT(DF_MIB);
    DF_BUF struct df_buf c = DF_BUF_INIT(DF_MIB);
    say(watch, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
    say(log, "GET /v1/runs/net-1/log?follow=true HTTP/1.1\r\n" HEAD "\r\n");
    assert_true(hear(watch, &a, "event: run\n"));
    assert_true(hear(log, &b, "text/event-stream"));
    df_api_stop(w->api);
    assert_true(hear(watch, &a, "event: stopping\n"));
    assert_true(hear(log, &b, "event: stopping\n"));
    hear_all(idle, &c);
    assert_int_equal(c.len, 0);
    start(w);
}

static void followers_that_vanish_give_their_threads_back(void **state)
{
    struct world *w = *state;
    make_run(w);
    for (int i = 0; i < 50; i++) {
        DF_CLOSE int fd = dial(w);
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        say(fd, "GET /v1/runs/net-1/watch HTTP/1.1\r\n" HEAD "\r\n");
        assert_true(hear(fd, &b, "event: run\n"));
    }
    int64_t end = df_mono_ms() + DEADLINE_MS;
    for (;;) {
        REPLY struct reply r = get(w, "/metrics", "");
        const char *line = strstr(r.body, "\ndayfly_http_connections ");
        assert_non_null(line);
        if (strtod(line + strlen("\ndayfly_http_connections "), NULL) <= 2)
            return;
        if (df_mono_ms() > end)
            fail_msg("followers stay: %s", line);
        (void)poll(NULL, 0, 20);
    }
}

/* ---- a log that grows ---- */

#define TOKEN "token-of-the-step"

static void make_step(const struct world *w, char ret_uid[64])
{
    char hash[DF_SHA256_HEX];
    DF_JSON cJSON *doc = NULL, *stored = NULL;
    assert_int_equal(df_sha256_hex(TOKEN, strlen(TOKEN), hash, NULL), 0);
    DF_FREE char *text =
        df_strf("{\"apiVersion\":\"" DF_API_VERSION "\",\"kind\":\"TaskAction\","
                "\"metadata\":{\"name\":\"net-1-plan\",\"labels\":{\"dayfly.dev/run\":\"net-1\"}},"
                "\"spec\":{\"action\":\"plan\",\"runRef\":{\"name\":\"net-1\"},"
                "\"executorRef\":{\"name\":\"net\"}},"
                "\"status\":{\"auth\":{\"step\":\"%s\"}}}",
                hash);
    assert_int_equal(df_json_parse(text, strlen(text), &doc, NULL), 0);
    assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, doc, &stored, NULL), 0);
    (void)snprintf(ret_uid, 64, "%s", df_json_str(stored, "metadata.uid"));
}

static int end_step(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    return df_task_set_conditions(doc, DF_OUTCOME_SUCCEEDED, "Planned", "", df_real_us(), err);
}

static void append(const struct world *w, const char *uid, size_t offset, const char *bytes,
                   size_t n)
{
    DF_FREE char *raw = df_strf("POST /v1/steps/%s/streams/log?offset=%zu HTTP/1.1\r\n" HEAD
                                "Authorization: Bearer " TOKEN "\r\n"
                                "Content-Length: %zu\r\n\r\n%.*s",
                                uid, offset, n, (int)n, bytes);
    REPLY struct reply r = ask(w, raw);
    if (r.status != 200)
        fail_msg("%s", df_buf_str(&r.all));
}

struct reader {
    const struct world *w;
    struct df_buf text;    /* what the events said, one behind the other */
    struct df_buf problem; /* what was wrong with them */
};

static void take_event(struct reader *r, const char *data, size_t n)
{
    DF_JSON cJSON *event = NULL;
    struct df_err err = {0};
    if (df_json_parse(data, n, &event, &err) < 0)
        (void)df_buf_addf(&r->problem, "%s: %.*s\n", err.message, (int)n, data);
    const char *text = df_json_str(event, "text");
    if (text && df_json_int(event, "offset", -1) != (int64_t)r->text.len)
        (void)df_buf_addf(&r->problem, "offset at %zu: %.*s\n", r->text.len, (int)n, data);
    if (text)
        (void)df_buf_adds(&r->text, text);
}

/* Follows to the end on a thread of its own. */
static void *follow(void *arg)
{
    struct reader *r = arg;
    DF_CLOSE int fd = dial(r->w);
    DF_BUF struct df_buf raw = DF_BUF_INIT(16 * DF_MIB);
    /* HTTP/1.0 gets its body without chunks. */
    say(fd, "GET /v1/runs/net-1/log?follow=true HTTP/1.0\r\nHost: localhost\r\n\r\n");
    hear_all(fd, &raw);
    for (const char *p = strstr(df_buf_str(&raw), "\ndata: "); p; p = strstr(p + 1, "\ndata: ")) {
        const char *data = p + strlen("\ndata: ");
        take_event(r, data, strcspn(data, "\n"));
    }
    if (!strstr(df_buf_str(&raw), "event: end\n"))
        (void)df_buf_adds(&r->problem, "no end\n");
    return NULL;
}

static void followers_get_every_byte_once_however_the_frames_are_cut(void **state)
{
    struct world *w = *state;
    char uid[64];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < 400; i++)
        (void)df_buf_addf(&text,
                          "line %d: gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \"\\\t%s", i,
                          i % 7 ? "\n" : "");
    make_run(w);
    make_step(w, uid);
    struct reader readers[3];
    pthread_t threads[3];
    for (size_t i = 0; i < DF_ARRAY_SIZE(readers); i++) {
        readers[i] = (struct reader){w, DF_BUF_INIT(DF_MIB), DF_BUF_INIT(DF_MIB)};
        assert_int_equal(pthread_create(&threads[i], NULL, follow, &readers[i]), 0);
    }
    for (size_t at = 0, n = 1; at < text.len; at += n, n = n * 3 % 997 + 1) {
        n = n < text.len - at ? n : text.len - at;
        append(w, uid, at, text.data + at, n);
    }
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, "net-1-plan", end_step, NULL, NULL, NULL),
        0);
    change_phase(w, "Succeeded");
    for (size_t i = 0; i < DF_ARRAY_SIZE(readers); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_string_equal(df_buf_str(&readers[i].problem), "");
        assert_string_equal(df_buf_str(&readers[i].text), df_buf_str(&text));
        df_buf_free(&readers[i].problem);
        df_buf_free(&readers[i].text);
    }
    REPLY struct reply plain = ask(w, "GET /v1/runs/net-1/log HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_string_equal(plain.body, df_buf_str(&text));
}

static void bytes_that_are_no_text_do_not_break_the_stream(void **state)
{
    struct world *w = *state;
    char uid[64];
    make_run(w);
    make_step(w, uid);
    append(w, uid, 0, "a\xff\xfe\xe2\x82z\x01\x1b[1m\xc3", 12);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, "net-1-plan", end_step, NULL, NULL, NULL),
        0);
    change_phase(w, "Succeeded");
    struct reader r = {w, DF_BUF_INIT(DF_MIB), DF_BUF_INIT(DF_MIB)};
    (void)follow(&r);
    assert_string_equal(df_buf_str(&r.problem), "");
#define BAD "\xef\xbf\xbd"
    assert_string_equal(df_buf_str(&r.text), "a" BAD BAD BAD BAD "z\x01\x1b[1m" BAD);
    df_buf_free(&r.problem);
    df_buf_free(&r.text);
}

static void a_gap_is_answered_with_the_end_of_the_stream(void **state)
{
    struct world *w = *state;
    char uid[64];
    make_run(w);
    make_step(w, uid);
    append(w, uid, 0, "12345", 5);
    append(w, uid, 3, "456", 3); /* an overlap is skipped */
    DF_FREE char *raw = df_strf("POST /v1/steps/%s/streams/log?offset=7 HTTP/1.1\r\n" HEAD
                                "Authorization: Bearer " TOKEN "\r\nContent-Length: 1\r\n\r\nx",
                                uid);
    REPLY struct reply r = ask(w, raw);
    expect_problem(&r, 409, "Gap");
    assert_non_null(strstr(r.body, "\"offset\":6"));
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        WITH(a_watcher_sees_the_run_its_changes_and_its_end),
        WITH(the_log_of_a_final_run_ends_at_once),
        WITH(a_task_that_only_has_the_name_of_a_step_is_not_shown_with_the_run),
        WITH(a_run_of_an_unknown_action_is_followed_to_its_end_and_has_no_steps),
        WITH(a_deleted_run_ends_its_watchers),
        WITH(a_run_that_was_replaced_by_another_of_its_name_ends_its_watchers),
        WITH(followers_are_told_when_the_server_stops),
        WITH(followers_that_vanish_give_their_threads_back),
        WITH(followers_get_every_byte_once_however_the_frames_are_cut),
        WITH(bytes_that_are_no_text_do_not_break_the_stream),
        WITH(a_gap_is_answered_with_the_end_of_the_stream),
    };
    return cmocka_run_group_tests_name("followers", tests, NULL, NULL);
}
