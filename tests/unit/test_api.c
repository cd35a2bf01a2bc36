/* The server as strangers and friends meet it: requests, bodies, documents, roles. */
#include "tests/unit/api_world.h"

/* ---- start and stop ---- */

static void the_port_of_last_time_is_taken_again(void **state)
{
    struct world *w = *state;
    uint16_t before = w->port;
    df_api_stop(w->api);
    assert_int_equal(
        df_fs_replace(w->s.endpoint_file, w->s.server_url, strlen(w->s.server_url), 0600, NULL), 0);
    start(w);
    assert_int_equal(w->port, before);
}

static void a_port_that_somebody_else_has_meanwhile_is_left_to_them(void **state)
{
    struct world *w = *state;
    struct world other = {.s = {.config = &w->config}};
    uint16_t before = w->port;
    assert_int_equal(
        df_fs_replace(w->s.endpoint_file, w->s.server_url, strlen(w->s.server_url), 0600, NULL), 0);
    other.s.endpoint_file = w->s.endpoint_file;
    other.s.store = w->s.store;
    other.s.blobs = w->s.blobs;
    start(&other);
    assert_int_not_equal(other.port, before);
    df_api_stop(other.api);
    free(other.s.server_url);
}

static void a_server_that_others_can_reach_wants_a_token_file(void **state)
{
    struct world *w = *state;
    struct df_config config = {.listen = strdup("0.0.0.0:0")};
    struct df_spawner s = {.config = &config, .store = w->s.store, .blobs = w->s.blobs};
    struct df_api *api = NULL;
    struct df_err err = {0};
    assert_int_equal(df_api_start(&s, &df_routes, &api, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "auth.tokenFile"));
    free(config.listen);
}

static void addresses_that_are_none_are_refused_by_name(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"127.0.0.1",       "",      "::1:80", "127.0.0.1:x",
                                      "127.0.0.1:70000", "[::1]", ":-1"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        struct df_config config = {.listen = strdup(bad[i])};
        struct df_spawner s = {.config = &config, .store = w->s.store, .blobs = w->s.blobs};
        struct df_api *api = NULL;
        struct df_err err = {0};
        assert_int_equal(df_api_start(&s, &df_routes, &api, &err), -1);
        assert_true(df_starts_with(err.message, "listen"));
        free(config.listen);
    }
}

/* ---- requests ---- */

static void probes_answer(void **state)
{
    struct world *w = *state;
    REPLY struct reply live = get(w, "/livez", "");
    assert_int_equal(live.status, 200);
    assert_string_equal(live.body, "ok\n");
    struct df_engine local = {.kind = &df_engine_kinds[DF_ENGINE_LOCAL]};
    REPLY struct reply without = get(w, "/readyz", "");
    assert_int_equal(without.status, 503);
    assert_string_equal(without.body, "[-] engines: no execution engines available\nnot ready\n");
    assert_int_equal(df_engine_register(&w->s.engines, &local, NULL), 0);
    REPLY struct reply ready = get(w, "/readyz?verbose", "");
    assert_int_equal(ready.status, 200);
    assert_string_equal(
        ready.body, "[+] store ok\n[+] blobs ok\n[+] tokens ok\n[+] certificate ok\n[+] leader ok\n"
                    "[+] engines ok\n[+] serving ok\nok\n");
}

static void what_is_wrong_with_a_request_is_said_as_a_problem(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *raw;
        int status;
        const char *reason;
    } cases[] = {
        {"GET /nothing HTTP/1.1\r\n" HEAD "\r\n", 404, "NotFound"},
        {"GET /v1/runs/a%2f..%2fb HTTP/1.1\r\n" HEAD "\r\n", 400, "BadTarget"},
        {"GET /v1/runs/%00 HTTP/1.1\r\n" HEAD "\r\n", 400, "BadTarget"},
        {"GET /v1/../livez HTTP/1.1\r\n" HEAD "\r\n", 400, "BadTarget"},
        {"DELETE /v1/runs HTTP/1.1\r\n" HEAD "\r\n", 405, "MethodNotAllowed"},
        {"OPTIONS * HTTP/1.1\r\n" HEAD "\r\n", 400, "BadTarget"},
        {"GET /v1/runs?lmit=1 HTTP/1.1\r\n" HEAD "\r\n", 400, "UnknownParameter"},
        {"GET /v1/runs?limit=0 HTTP/1.1\r\n" HEAD "\r\n", 400, "BadRequest"},
        {"GET /v1/runs?limit=1&limit=2 HTTP/1.1\r\n" HEAD "\r\n", 400, "BadTarget"},
        {"GET /v1/runs HTTP/1.1\r\n" HEAD "Content-Length: 1\r\n\r\nx", 400, "BadRequest"},
        {"GET /v1/runs/none HTTP/1.1\r\n" HEAD "\r\n", 404, "NotFound"},
        {"POST /v1/executors HTTP/1.1\r\n" HEAD "Content-Length: 2\r\n"
         "Content-Type: text/plain\r\n\r\n{}",
         415, "UnsupportedMediaType"},
        {"POST /v1/executors HTTP/1.1\r\n" HEAD "Content-Length: 2\r\n\r\n{}", 415,
         "UnsupportedMediaType"},
        {"POST /v1/executors HTTP/1.1\r\n" JSON_HEAD "Content-Length: 1\r\n\r\n{", 400,
         "BadRequest"},
        {"POST /v1/executors HTTP/1.1\r\n" JSON_HEAD "Content-Length: 2\r\n\r\n[]", 400,
         "InvalidDocument"},
        {"POST /v1/executors HTTP/1.1\r\n" JSON_HEAD "Content-Length: 99999999\r\n\r\n{", 413,
         "TooLarge"},
        {"POST /v1/executors HTTP/1.1\r\n" HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
         400, "BadRequest"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        REPLY struct reply r = ask(w, cases[i].raw);
        if (r.status != cases[i].status)
            fail_msg("case %zu: %s", i, df_buf_str(&r.all));
        expect_problem(&r, cases[i].status, cases[i].reason);
    }
}

static void what_is_no_request_at_all_is_cut_off(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf giant = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&giant, "GET /livez HTTP/1.1\r\n" HEAD "X-Long: ");
    for (int i = 0; i < 60000; i++)
        (void)df_buf_addc(&giant, 'x');
    (void)df_buf_adds(&giant, "\r\n\r\n");
    REPLY struct reply large = ask(w, df_buf_str(&giant));
    assert_true(large.status == 431 || large.status == 0);
    static const char *const raw[] = {"\r\n\r\nnonsense\r\n\r\n", "GET /livez HTTP/1.1\r\n\r\n",
                                      "GET / livez HTTP/1.1\r\n" HEAD "\r\n",
                                      "POST /v1/runs HTTP/1.1\r\n" HEAD
                                      "Content-Length: -1\r\n\r\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(raw); i++) {
        REPLY struct reply r = ask(w, raw[i]);
        assert_true(r.status == 0 || (r.status >= 400 && r.status < 500));
    }
    REPLY struct reply after = get(w, "/livez", "");
    assert_int_equal(after.status, 200);
}

static void a_body_in_chunks_is_taken_up_to_the_cap(void **state)
{
    struct world *w = *state;
    REPLY struct reply good =
        ask(w, "POST /v1/executors HTTP/1.1\r\n" JSON_HEAD "Transfer-Encoding: chunked\r\n\r\n"
               "1\r\n{\r\n3\r\n   \r\n1\r\n}\r\n0\r\n\r\n");
    expect_problem(&good, 400, "InvalidDocument");
    DF_BUF struct df_buf raw = DF_BUF_INIT(8 * DF_MIB);
    (void)df_buf_adds(&raw, "POST /v1/executors HTTP/1.1\r\n" JSON_HEAD
                            "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 32; i++) {
        (void)df_buf_adds(&raw, "10000\r\n");
        memset(df_buf_reserve(&raw, 0x10000), ' ', 0x10000);
        raw.len += 0x10000;
        (void)df_buf_adds(&raw, "\r\n");
    }
    (void)df_buf_adds(&raw, "0\r\n\r\n");
    REPLY struct reply large = ask(w, df_buf_str(&raw));
    expect_problem(&large, 413, "TooLarge");
}

static void a_refused_request_leaves_the_connection_usable(void **state)
{
    struct world *w = *state;
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "POST /v1/executors HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
            "Content-Length: 5\r\n\r\nhello");
    assert_true(hear(fd, &b, "UnsupportedMediaType"));
    say(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(hear(fd, &b, "\r\n\r\nok\n"));
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct world *w = *state;
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /v1/runs/none HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /v1/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    hear_all(fd, &b);
    const char *first = strstr(df_buf_str(&b), "\r\n\r\nok\n");
    const char *second = strstr(df_buf_str(&b), "problems/NotFound");
    const char *third = strstr(df_buf_str(&b), "\"apiVersion\"");
    assert_true(first && second && third && first < second && second < third);
}

static void a_body_announced_too_large_is_answered_before_it_is_sent(void **state)
{
    struct world *w = *state;
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "POST /v1/executors HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10485760\r\n\r\n");
    assert_true(hear(fd, &b, "problems/TooLarge"));
}

static void a_request_that_expects_a_refusal_gets_it_and_no_continue(void **state)
{
    struct world *w = *state;
    DF_CLOSE int fd = dial(w);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    say(fd, "POST /nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            "Content-Length: 10\r\n\r\n");
    assert_true(hear(fd, &b, "problems/NotFound"));
    assert_null(strstr(df_buf_str(&b), "100 Continue"));
}

/* ---- documents ---- */

static void an_executor_is_created_once_and_read_back_with_its_etag(void **state)
{
    struct world *w = *state;
    REPLY struct reply made = post(w, "/v1/executors", "", EXECUTOR);
    assert_int_equal(made.status, 201);
    assert_non_null(strstr(df_buf_str(&made.all), "Location: /v1/executors/net\r\n"));
    REPLY struct reply again = post(w, "/v1/executors", "", EXECUTOR);
    expect_problem(&again, 409, "AlreadyExists");
    REPLY struct reply read = get(w, "/v1/executors/net", "");
    assert_int_equal(read.status, 200);
    const char *tag = strcasestr(df_buf_str(&read.all), "ETag: ");
    assert_non_null(tag);
    DF_FREE char *match = df_strf("If-None-Match: %.*s\r\n", (int)strcspn(tag + 6, "\r"), tag + 6);
    REPLY struct reply same = get(w, "/v1/executors/net", match);
    assert_int_equal(same.status, 304);
    assert_string_equal(same.body, "");
    REPLY struct reply other = get(w, "/v1/executors/net", "If-None-Match: \"x\"\r\n");
    assert_int_equal(other.status, 200);
}

static void yaml_is_read_as_json_is(void **state)
{
    struct world *w = *state;
    REPLY struct reply made = post(
        w, "/v1/executors", "Content-Type: application/yaml; charset=utf-8\r\n",
        "metadata:\n  name: net\nspec:\n  source: {url: 'file:///srv/net', kind: directory}\n");
    assert_int_equal(made.status, 201);
}

static void one_key_makes_one_executor_and_another_body_is_refused(void **state)
{
    struct world *w = *state;
    static const char key[] = "Idempotency-Key: k1\r\n";
    REPLY struct reply first = post(w, "/v1/executors", key, EXECUTOR);
    assert_int_equal(first.status, 201);
    REPLY struct reply second = post(w, "/v1/executors", key, EXECUTOR);
    assert_int_equal(second.status, 201);
    assert_non_null(strstr(df_buf_str(&second.all), "Idempotency-Replayed: true"));
    assert_string_equal(first.body, second.body);
    REPLY struct reply other = post(w, "/v1/executors", key, "{\"metadata\":{\"name\":\"b\"}}");
    expect_problem(&other, 422, "IdempotencyKeyReused");
}

static void a_key_has_1_to_255_visible_characters_of_ascii(void **state)
{
    struct world *w = *state;
    char longest[256] = "";
    memset(longest, 'k', sizeof(longest) - 1);
    const struct {
        const char *key, *more;
        unsigned status;
    } cases[] = {
        {"!~", "", 201}, {"k", "", 409},         {longest, "", 409}, {longest, "k", 400},
        {"", "", 400},   {"two words", "", 400}, {"a\tb", "", 400},  {"\xc3\xa9", "", 400},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *key = df_strf("Idempotency-Key: %s%s\r\n", cases[i].key, cases[i].more);
        REPLY struct reply r = post(w, "/v1/executors", key, EXECUTOR);
        assert_int_equal(r.status, cases[i].status);
        if (r.status == 400)
            assert_non_null(strstr(r.body, "Idempotency-Key: must have 1 to 255 characters"));
    }
}

static void a_reason_to_cancel_is_at_most_1024_bytes(void **state)
{
    struct world *w = *state;
    char longest[1025] = "";
    memset(longest, '*', sizeof(longest) - 1);
    const struct {
        const char *path, *more;
        unsigned status;
    } cases[] = {
        {"/v1/runs/none/cancel", "", 404},
        {"/v1/runs/none/cancel", "*", 400},
        {"/v1/taskactions/none/cancel", "", 404},
        {"/v1/taskactions/none/cancel", "*", 400},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *body = df_strf("{\"reason\":\"%s%s\"}", longest, cases[i].more);
        REPLY struct reply r = post(w, cases[i].path, "", body);
        assert_int_equal(r.status, cases[i].status);
    }
}

struct poster {
    const struct world *w;
    int created, conflicts, others;
};

static void *post_often(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < 10; i++) {
        REPLY struct reply r = post(p->w, "/v1/executors", "", EXECUTOR);
        p->created += r.status == 201;
        p->conflicts += r.status == 409;
        p->others += r.status != 201 && r.status != 409;
    }
    return NULL;
}

static void of_many_creates_at_once_one_wins(void **state)
{
    struct poster posters[8];
    pthread_t threads[8];
    int created = 0, others = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        posters[i] = (struct poster){.w = *state};
        assert_int_equal(pthread_create(&threads[i], NULL, post_often, &posters[i]), 0);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        created += posters[i].created;
        others += posters[i].others;
    }
    assert_int_equal(created, 1);
    assert_int_equal(others, 0);
}

/* ---- who may ---- */

static void a_page_that_was_rebound_to_loopback_is_refused(void **state)
{
    struct world *w = *state;
    REPLY struct reply rebound = ask(w, "GET /v1/runs HTTP/1.1\r\nHost: evil.example\r\n"
                                        "Connection: close\r\n\r\n");
    expect_problem(&rebound, 403, "Forbidden");
    REPLY struct reply foreign = get(w, "/v1/runs", "Origin: http://evil.example\r\n");
    expect_problem(&foreign, 403, "Forbidden");
    REPLY struct reply own = get(w, "/v1/runs", "Origin: http://localhost\r\n");
    assert_int_equal(own.status, 200);
    REPLY struct reply cross = get(w, "/v1/runs", "Sec-Fetch-Site: cross-site\r\n");
    expect_problem(&cross, 403, "Forbidden");
    REPLY struct reply port = get(w, "/v1/runs", "Sec-Fetch-Site: same-site\r\n");
    expect_problem(&port, 403, "Forbidden");
    REPLY struct reply typed = get(w, "/v1/runs", "Sec-Fetch-Site: none\r\n");
    assert_int_equal(typed.status, 200);
    REPLY struct reply unknown = get(w, "/v1/runs", "Authorization: Bearer x\r\n");
    expect_problem(&unknown, 401, "Unauthorized");
}

static void each_role_may_what_it_may(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *token;
        const char *path;
        bool post;
        int status;
    } cases[] = {
        {NULL, "/livez", false, 200},
        {NULL, "/metrics", false, 200},
        {NULL, "/v1/version", false, 200},
        {NULL, "/v1/executors", false, 401},
        {"nobody", "/v1/executors", false, 401},
        {"read", "/v1/executors", false, 200},
        {"read", "/v1/executors", true, 403},
        {"read", "/v1/audit", false, 403},
        {"write", "/v1/audit", false, 403},
        {"admin", "/v1/audit", false, 200},
        {"write", "/v1/executors", true, 201},
        {"read", "/v1/executors/net/state", false, 403},
        {"admin", "/v1/steps/x/streams/log", false, 404},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *header =
            cases[i].token ? df_strf("Authorization: Bearer %s\r\n", cases[i].token) : strdup("");
        REPLY struct reply r = cases[i].post ? post(w, cases[i].path, header, EXECUTOR)
                                             : get(w, cases[i].path, header);
        if (r.status != cases[i].status)
            fail_msg("case %zu: %s", i, df_buf_str(&r.all));
        if (r.status == 401)
            assert_non_null(strstr(df_buf_str(&r.all), "WWW-Authenticate: Bearer"));
    }
}

static void every_change_and_every_refusal_is_in_the_trail(void **state)
{
    struct world *w = *state;
    REPLY struct reply refused =
        post(w, "/v1/executors", "Authorization: Bearer read\r\n", EXECUTOR);
    REPLY struct reply done = post(w, "/v1/executors", "Authorization: Bearer write\r\n", EXECUTOR);
    REPLY struct reply stranger = post(w, "/v1/executors", "Authorization: Bearer x\r\n", EXECUTOR);
    assert_int_equal(refused.status + done.status + stranger.status, 403 + 201 + 401);
    DF_JSON cJSON *list = NULL;
    char *cursor = NULL;
    assert_int_equal(w->s.store->ops->audit_list(w->s.store, NULL, NULL, 10, &list, &cursor, NULL),
                     0);
    free(cursor);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    static const char *const wanted[][3] = {{"anonymous", "login", "refused"},
                                            {"write-name", "create", "done"},
                                            {"read-name", "create", "refused"}};
    for (int i = 0; i < 3; i++) {
        const cJSON *entry = cJSON_GetArrayItem(list, i);
        assert_string_equal(df_json_str(entry, "actor"), wanted[i][0]);
        assert_string_equal(df_json_str(entry, "action"), wanted[i][1]);
        assert_string_equal(df_json_str(entry, "outcome"), wanted[i][2]);
    }
}

static void who_may_not_read_is_in_the_trail_with_his_address_but_not_without_end(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 200; i++) {
        REPLY struct reply r = get(w, "/v1/audit", "Authorization: Bearer read\r\n");
        assert_int_equal(r.status, 403);
    }
    DF_JSON cJSON *list = NULL;
    struct df_audit_filter f = {.words = {[DF_AUDIT_ACTOR] = "read-name"}};
    assert_int_equal(df_store_audit_list(w->s.store, &f, NULL, 1000, &list, NULL, NULL), 0);
    int entries = cJSON_GetArraySize(list);
    assert_true(entries >= 1 && entries < 150);
    assert_string_equal(df_json_str(list->child, "action"), "read");
    assert_string_equal(df_json_str(list->child, "name"), "/v1/audit");
    assert_string_equal(df_json_str(list->child, "outcome"), "refused");
    assert_string_equal(df_json_str(list->child, "address"), "127.0.0.1");
}

static void a_filter_of_the_trail_that_is_none_is_refused_by_name(void **state)
{
    static const char *const cases[][2] = {{"outcome=good", "?outcome: \\\"good\\\": must be done"},
                                           {"since=yesterday", "?since: \\\"yesterday\\\" is no"},
                                           {"actor=", "?actor: must not be empty"},
                                           {"limit=0", "?limit"},
                                           {"cursor=x", "cursor"},
                                           {"who=ann", "who"}};
    struct world *w = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *path = df_strf("/v1/audit?%s", cases[i][0]);
        REPLY struct reply r = get(w, path, "Authorization: Bearer admin\r\n");
        assert_int_equal(r.status, 400);
        if (!strstr(df_buf_str(&r.all), cases[i][1]))
            fail_msg("%s", df_buf_str(&r.all));
    }
}

static void guessing_tokens_cannot_fill_the_disk(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 200; i++) {
        REPLY struct reply r = get(w, "/v1/runs", "Authorization: Bearer guess\r\n");
        assert_int_equal(r.status, 401);
    }
    DF_JSON cJSON *list = NULL;
    char *cursor = NULL;
    assert_int_equal(w->s.store->ops->audit_list(w->s.store, NULL, NULL, 200, &list, &cursor, NULL),
                     0);
    free(cursor);
    /* 30 a minute, of which there may be two on a slow machine. */
    int entries = cJSON_GetArraySize(list);
    assert_true(entries >= 1 && entries < 100);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        WITH(the_port_of_last_time_is_taken_again),
        WITH(a_port_that_somebody_else_has_meanwhile_is_left_to_them),
        WITH(a_server_that_others_can_reach_wants_a_token_file),
        WITH(addresses_that_are_none_are_refused_by_name),
        WITH(probes_answer),
        WITH(what_is_wrong_with_a_request_is_said_as_a_problem),
        WITH(what_is_no_request_at_all_is_cut_off),
        WITH(a_body_in_chunks_is_taken_up_to_the_cap),
        WITH(a_refused_request_leaves_the_connection_usable),
        WITH(pipelined_requests_are_answered_in_order),
        WITH(a_body_announced_too_large_is_answered_before_it_is_sent),
        WITH(a_request_that_expects_a_refusal_gets_it_and_no_continue),
        WITH(an_executor_is_created_once_and_read_back_with_its_etag),
        WITH(yaml_is_read_as_json_is),
        WITH(one_key_makes_one_executor_and_another_body_is_refused),
        WITH(a_reason_to_cancel_is_at_most_1024_bytes),
        WITH(a_key_has_1_to_255_visible_characters_of_ascii),
        WITH(of_many_creates_at_once_one_wins),
        WITH(a_page_that_was_rebound_to_loopback_is_refused),
        GUARDED(each_role_may_what_it_may),
        GUARDED(every_change_and_every_refusal_is_in_the_trail),
        GUARDED(who_may_not_read_is_in_the_trail_with_his_address_but_not_without_end),
        GUARDED(a_filter_of_the_trail_that_is_none_is_refused_by_name),
        GUARDED(guessing_tokens_cannot_fill_the_disk),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
