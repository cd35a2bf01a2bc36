#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/http/http.h"
#include "runner/platform/scrape.h"
#include "runner/platform/telemetry.h"
#include "tests/unit/answering_server.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

static char hub[] = "hub", staging[] = "staging";

static struct df_platform_input input(void)
{
    return (struct df_platform_input){
        .action = DF_PLATFORM_DEPLOY,
        .name = hub,
        .environment = staging,
        .trace = {"0123456789abcdef0123456789abcdef", "0123456789abcdef"}};
}

static struct df_telemetry *start(const struct df_platform_input *in)
{
    struct df_err err = {0};
    struct df_telemetry *t = NULL;
    if (df_telemetry_start(in, &t, &err) < 0)
        fail_msg("%s", err.message);
    return t;
}

static void run(const struct df_platform_input *in, enum df_result result)
{
    struct df_telemetry *t = start(in);
    df_telemetry_end(t, result, "app failed");
    df_telemetry_free(t);
}

/* ---- metrics ---- */

static struct df_scrape *serve(void)
{
    struct df_err err = {0};
    struct df_scrape *s = NULL;
    if (df_scrape_start("127.0.0.1:0", &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

static int get(const struct df_scrape *s, const char *path, struct df_http_response *ret)
{
    struct df_err err = {0};
    const struct df_http_options options = {.proxy = ""};
    DF_HTTP struct df_http *http = NULL;
    DF_FREE char *url = df_strf("http://127.0.0.1:%u%s", df_scrape_port(s), path);
    const struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    if (df_http_new(&options, &http, &err) < 0 || df_http_send(http, &req, ret, &err) < 0)
        fail_msg("%s: %s", url, err.message);
    return ret->status;
}

static void a_scrape_while_an_action_runs_shows_that_it_runs(void **state)
{
    (void)state;
    const struct df_platform_input in = input();
    struct df_scrape *s = serve();
    struct df_telemetry *t = start(&in);
    DF_HTTP_RESPONSE struct df_http_response answer = {.status = 0};
    assert_int_equal(get(s, "/metrics", &answer), 200);
    assert_non_null(strstr(df_buf_str(&answer.body), "\nexecutor_action_status 1\n"));
    assert_string_equal(answer.content_type, "text/plain; version=0.0.4");
    df_telemetry_end(t, DF_RESULT_SUCCESS, NULL);
    df_telemetry_free(t);
    df_scrape_stop(s);
}

static void only_the_metrics_are_served(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/metrics/x", "/metricsx", "/-/healthy"};
    struct df_scrape *s = serve();
    for (size_t i = 0; i < DF_ARRAY_SIZE(paths); i++) {
        DF_HTTP_RESPONSE struct df_http_response answer = {.status = 0};
        assert_int_equal(get(s, paths[i], &answer), 404);
    }
    df_scrape_stop(s);
}

static int connect_to(const struct df_scrape *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)df_scrape_port(s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static void who_says_nothing_or_never_ends_does_not_keep_others_away(void **state)
{
    (void)state;
    struct df_scrape *s = serve();
    DF_CLOSE int silent = connect_to(s);
    DF_CLOSE int endless = connect_to(s);
    char text[5000];
    memset(text, 'x', sizeof(text));
    assert_true(send(endless, text, sizeof(text), MSG_NOSIGNAL) > 0);
    DF_HTTP_RESPONSE struct df_http_response answer = {.status = 0};
    assert_int_equal(get(s, "/metrics", &answer), 200);
    assert_true(recv(endless, text, sizeof(text), 0) <= 0);
    df_scrape_stop(s);
}

static void what_is_no_address_is_refused_in_words(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        "9102",           "127.0.0.1:", "127.0.0.1:http",
                                        "[::1:80", "no such host:80"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        struct df_err err = {0};
        struct df_scrape *s = NULL;
        if (df_scrape_start(wrong[i], &s, &err) == 0)
            fail_msg("%s is accepted", wrong[i]);
        assert_non_null(strstr(err.message, "\""));
    }
}

static void assert_text(const char *dir, const char *line)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_fs_join(dir, "metrics.prom");
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    if (!strstr(df_buf_str(&text), line))
        fail_msg("%s is not in\n%s", line, df_buf_str(&text));
}

static void the_textfile_has_the_result_and_what_went_wrong(void **state)
{
    const char *to = getenv("DAYFLY_TEST_REPORTS"); /* for tests/integration: promtool reads it */
    const char *dir = to ? to : *state;
    DF_FREE char *file = df_fs_join(dir, "metrics.prom");
    struct df_platform_input in = input();
    in.metrics_textfile = file;
    struct df_telemetry *t = start(&in);
    df_telemetry_error(t, "ImagePullFailed");
    df_telemetry_error(t, "ImagePullFailed");
    df_telemetry_end(t, DF_RESULT_PARTIAL, NULL);
    df_telemetry_free(t);
    assert_text(dir, "\nexecutor_action_status 3\n");
    assert_text(dir, "\nexecutor_errors_total{type=\"ImagePullFailed\"} 2\n");
    assert_text(dir,
                "\nexecutor_action_duration_seconds_count{action=\"deploy\",result=\"partial\"} ");
}

static void the_gauge_of_a_component_follows_its_state_and_health(void **state)
{
    static char name[] = "cert-manager";
    const struct df_node node = {.name = name};
    static const struct {
        enum df_platform_action action;
        enum df_component_state state;
        const char *health, *value;
    } cases[] = {
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_DONE, "Healthy", "1"},
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_DONE, "Suspended", "1"},
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_RUNNING, "Progressing", "0.5"},
        {DF_PLATFORM_VALIDATE, DF_COMPONENT_DEGRADED, "Degraded", "0.5"},
        {DF_PLATFORM_VALIDATE, DF_COMPONENT_DEGRADED, "Missing", "0"},
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_FAILED, "Healthy", "0"},
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_SKIPPED, "", "0"},
        {DF_PLATFORM_DEPLOY, DF_COMPONENT_SKIPPED, "Healthy", "1"},
        {DF_PLATFORM_TEARDOWN, DF_COMPONENT_DONE, "", "0"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *file = df_fs_join(*state, "metrics.prom");
        DF_FREE char *line =
            df_strf("\nexecutor_component_health{component=\"cert-manager\"} %s\n", cases[i].value);
        struct df_platform_input in = input();
        in.action = cases[i].action;
        in.metrics_textfile = file;
        struct df_component c = {.node = &node, .state = cases[i].state};
        df_copy(c.health, sizeof(c.health), cases[i].health);
        struct df_telemetry *t = start(&in);
        df_telemetry_component(t, &c);
        df_telemetry_end(t, DF_RESULT_SUCCESS, NULL);
        df_telemetry_free(t);
        assert_text(*state, line);
    }
}

static void the_pushgateway_gets_them_under_the_name_of_the_platform(void **state)
{
    (void)state;
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    will_answer(&s, 202, "");
    struct df_platform_input in = input();
    DF_FREE char *url = df_strf("%s/", s.url);
    in.pushgateway_url = url;
    run(&in, DF_RESULT_SUCCESS);
    assert_int_equal(answering_count(&s), 1);
    assert_string_equal(s.asked[0].method, "PUT");
    assert_string_equal(s.asked[0].url, "/metrics/job/dayfly-platform/instance/hub");
    assert_string_equal(s.asked[0].type, "text/plain; version=0.0.4");
    assert_non_null(strstr(s.asked[0].body, "\nexecutor_action_status 2\n"));
    answering_close(&s);
}

/* ---- spans ---- */

static const cJSON *spans_in(const cJSON *batch)
{
    const cJSON *resource = df_json_at(batch, "resourceSpans");
    const cJSON *scope = resource ? df_json_at(resource->child, "scopeSpans") : NULL;
    return scope ? df_json_at(scope->child, "spans") : NULL;
}

static cJSON *asked_json(const struct answering_server *s, unsigned i)
{
    cJSON *j = NULL;
    assert_true(i < s->n_asked);
    assert_int_equal(df_json_parse(s->asked[i].body, strlen(s->asked[i].body), &j, NULL), 0);
    return j;
}

static void spans_hang_below_the_one_that_the_caller_named(void **state)
{
    (void)state;
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    will_answer(&s, 200, "{}");
    struct df_platform_input in = input();
    in.otlp_endpoint = s.url;
    struct df_telemetry *t = start(&in);
    struct df_span_id node, wait;
    DF_JSON cJSON *attributes = json("{'component':'app'}");
    df_telemetry_new_span(t, &node);
    df_telemetry_new_span(t, &wait);
    df_telemetry_span(t, &(struct df_span){.id = wait.hex,
                                           .parent = node.hex,
                                           .name = "wait",
                                           .from_us = 1000001,
                                           .to_us = 2000002,
                                           .error = "not in time"});
    df_telemetry_span(t, &(struct df_span){.id = node.hex,
                                           .name = "app",
                                           .from_us = 1000000,
                                           .to_us = 3000000,
                                           .attributes = attributes});
    DF_FREE char *root = strdup(df_telemetry_root(t));
    df_telemetry_end(t, DF_RESULT_FAILURE, "app failed");
    df_telemetry_free(t);

    DF_JSON cJSON *batch = asked_json(&s, 0);
    const cJSON *spans = spans_in(batch);
    assert_string_equal(s.asked[0].url, "/v1/traces");
    assert_int_equal(cJSON_GetArraySize(spans), 3);
    const cJSON *first = spans->child, *second = first->next, *last = second->next;
    assert_string_equal(df_json_str(first, "traceId"), in.trace.trace);
    assert_string_equal(df_json_str(first, "parentSpanId"), node.hex);
    assert_string_equal(df_json_str(first, "startTimeUnixNano"), "1000001000");
    assert_at(first, "status", "{'code':2,'message':'not in time'}");
    assert_string_equal(df_json_str(second, "parentSpanId"), root);
    assert_at(second, "attributes", "[{'key':'component','value':{'stringValue':'app'}}]");
    assert_at(second, "status", "{'code':1}");
    assert_string_equal(df_json_str(last, "name"), "deploy");
    assert_string_equal(df_json_str(last, "spanId"), root);
    assert_string_equal(df_json_str(last, "parentSpanId"), in.trace.parent);
    assert_string_equal(df_json_str(last, "status.message"), "app failed");
    answering_close(&s);
}

static void a_write_is_a_span_of_the_component_that_it_is_for(void **state)
{
    (void)state;
    static char app[] = "app";
    const struct df_node node = {.name = app};
    const struct df_component c = {.node = &node, .span = {"00000000000000cc"}};
    const struct df_kube_at at = {.resource = &df_kube_secrets, .name_space = "web", .name = "s"};
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    will_answer(&s, 200, "{}");
    struct df_platform_input in = input();
    in.otlp_endpoint = s.url;
    struct df_telemetry *t = start(&in);
    df_telemetry_enter(t, &c);
    df_telemetry_write(t, "patch", &at, 1000001, "no");
    df_telemetry_enter(t, NULL);
    df_telemetry_write(t, "delete", &at, 1000002, NULL);
    DF_FREE char *root = strdup(df_telemetry_root(t));
    df_telemetry_end(t, DF_RESULT_SUCCESS, NULL);
    df_telemetry_free(t);

    DF_JSON cJSON *batch = asked_json(&s, 0);
    const cJSON *first = spans_in(batch)->child, *second = first->next;
    assert_string_equal(df_json_str(first, "name"), "patch secrets");
    assert_string_equal(df_json_str(first, "parentSpanId"), "00000000000000cc");
    assert_string_equal(df_json_str(first, "startTimeUnixNano"), "1000001000");
    assert_at(first, "status", "{'code':2,'message':'no'}");
    assert_at(first, "attributes",
              "[{'key':'namespace','value':{'stringValue':'web'}},"
              "{'key':'name','value':{'stringValue':'s'}}]");
    assert_string_equal(df_json_str(second, "name"), "delete secrets");
    assert_string_equal(df_json_str(second, "parentSpanId"), root);
    assert_at(second, "status", "{'code':1}");
    answering_close(&s);
}

static void an_action_without_a_trace_begins_one(void **state)
{
    (void)state;
    struct df_platform_input in = input();
    in.trace = (struct df_trace_ids){.trace = ""};
    struct df_telemetry *t = start(&in);
    assert_int_equal(strlen(df_telemetry_trace(t)), 32);
    assert_int_equal(strspn(df_telemetry_trace(t), "0123456789abcdef"), 32);
    assert_int_equal(strspn(df_telemetry_root(t), "0123456789abcdef"), 16);
    df_telemetry_free(t);
}

static void the_root_span_is_the_one_that_the_input_has_named_already(void **state)
{
    (void)state;
    struct df_platform_input in = input();
    df_copy(in.trace.own, sizeof(in.trace.own), "00000000000000aa");
    struct df_telemetry *t = start(&in);
    assert_string_equal(df_telemetry_root(t), "00000000000000aa");
    df_telemetry_free(t);
}

static void tell_spans(struct df_telemetry *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct df_span_id id;
        df_telemetry_new_span(t, &id);
        df_telemetry_span(t, &(struct df_span){.id = id.hex, .name = "write"});
    }
}

static void many_spans_go_out_before_the_end(void **state)
{
    (void)state;
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    will_answer(&s, 200, "{}");
    struct df_platform_input in = input();
    in.otlp_endpoint = s.url;
    struct df_telemetry *t = start(&in);
    tell_spans(t, DF_LIMIT_SPANS);
    assert_int_equal(answering_count(&s), 1);
    DF_JSON cJSON *batch = asked_json(&s, 0);
    assert_int_equal(cJSON_GetArraySize(spans_in(batch)), DF_LIMIT_SPANS);
    df_telemetry_end(t, DF_RESULT_SUCCESS, NULL);
    df_telemetry_free(t);
    assert_int_equal(answering_count(&s), 2);
    answering_close(&s);
}

static void a_collector_that_fails_is_asked_again_only_at_the_end(void **state)
{
    (void)state;
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    will_answer(&s, 503, "");
    struct df_platform_input in = input();
    in.otlp_endpoint = s.url;
    struct df_telemetry *t = start(&in);
    tell_spans(t, 3 * DF_LIMIT_SPANS);
    assert_int_equal(answering_count(&s), 1);
    df_telemetry_end(t, DF_RESULT_SUCCESS, NULL);
    df_telemetry_free(t);
    assert_int_equal(answering_count(&s), 2);
    answering_close(&s);
}

/* ---- notices ---- */

static void a_failure_is_one_notice_and_an_invalid_input_none(void **state)
{
    (void)state;
    static const struct {
        enum df_result result;
        const char *word, *severity; /* NULL: no notice */
    } cases[] = {{DF_RESULT_SUCCESS, NULL, NULL},
                 {DF_RESULT_FAILURE, "failure", "critical"},
                 {DF_RESULT_PARTIAL, "partial", "warning"},
                 {DF_RESULT_INVALID, NULL, NULL},
                 {DF_RESULT_TIMEOUT, "timeout", "critical"}};
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    struct df_platform_input in = input();
    in.alertmanager_url = s.url;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        answering_forget(&s);
        will_answer(&s, 200, "");
        run(&in, cases[i].result);
        assert_int_equal(answering_count(&s), cases[i].word ? 1 : 0);
        if (!cases[i].word)
            continue;
        DF_JSON cJSON *alerts = asked_json(&s, 0);
        DF_FREE char *labels =
            df_strf("{'alertname':'DayflyPlatformActionFailed','action':'deploy',"
                    "'environment':'staging','name':'hub','result':'%s','severity':'%s'}",
                    cases[i].word, cases[i].severity);
        assert_string_equal(s.asked[0].url, "/api/v2/alerts");
        assert_int_equal(cJSON_GetArraySize(alerts), 1);
        assert_at(alerts->child, "labels", labels);
        assert_at(alerts->child, "annotations", "{'summary':'app failed'}");
    }
    answering_close(&s);
}

static void who_does_not_listen_fails_nothing(void **state)
{
    struct answering_server s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    answering_open(&s);
    answering_close(&s); /* nobody is at its port now */
    DF_FREE char *file = df_strf("%s/absent/metrics.prom", (char *)*state);
    char nowhere[] = "nowhere";
    struct df_platform_input in = input();
    in.otlp_endpoint = in.alertmanager_url = in.pushgateway_url = s.url;
    in.metrics_textfile = file;
    in.metrics_addr = nowhere;
    run(&in, DF_RESULT_FAILURE);
    assert_false(df_fs_exists(file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scrape_while_an_action_runs_shows_that_it_runs),
        cmocka_unit_test(only_the_metrics_are_served),
        cmocka_unit_test(who_says_nothing_or_never_ends_does_not_keep_others_away),
        cmocka_unit_test(what_is_no_address_is_refused_in_words),
        scratch_test(the_textfile_has_the_result_and_what_went_wrong),
        scratch_test(the_gauge_of_a_component_follows_its_state_and_health),
        cmocka_unit_test(the_pushgateway_gets_them_under_the_name_of_the_platform),
        cmocka_unit_test(spans_hang_below_the_one_that_the_caller_named),
        cmocka_unit_test(a_write_is_a_span_of_the_component_that_it_is_for),
        cmocka_unit_test(an_action_without_a_trace_begins_one),
        cmocka_unit_test(the_root_span_is_the_one_that_the_input_has_named_already),
        cmocka_unit_test(many_spans_go_out_before_the_end),
        cmocka_unit_test(a_collector_that_fails_is_asked_again_only_at_the_end),
        cmocka_unit_test(a_failure_is_one_notice_and_an_invalid_input_none),
        scratch_test(who_does_not_listen_fails_nothing),
    };
    df_log_setup(DF_LOG_ERROR, false, "test");
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
