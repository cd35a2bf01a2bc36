#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/job/job_fields.h"
#include "tests/unit/kube_diary.h"

/* ---- a server with a history ----------------------------------------------------------------- */

struct event {
    long version;
    const char *line;
};

#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}"

static const struct event history[] = {
    {11, EVENT("ADDED", "b", "11")},
    {12, EVENT("MODIFIED", "a", "12")},
    {13, EVENT("DELETED", "b", "13")},
    {20, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"20\"}}}"},
    {21, EVENT("ADDED", "\\u00e9", "21")},
    {22, EVENT("ADDED", "c", "22")},
};

static void tell_history(const struct kube_request *r, struct kube_reply *a)
{
    kube_stream(a);
    for (size_t i = 0; i < DF_ARRAY_SIZE(history); i++)
        if (history[i].version > kube_parameter(r->target, "resourceVersion"))
            kube_line(a, history[i].line);
}

static void cut_the_first(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    cut_first_stream(s, r, a, tell_history);
}

static void a_stream_cut_at_any_byte_is_taken_up_where_it_was(void **state)
{
    (void)state;
    cut_at_every_byte(cut_the_first, tell_history, NULL);
}

static void a_server_that_knows_json_alone_is_understood(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    size_t cut = SIZE_MAX;
    kube_start(&s, cut_the_first, &cut);
    diary_open(&d);
    watch_until(&s, &d, df_job_fields, "+c22");
    kube_stop(&s);
    assert_int_equal(s.watches, 1);
    diary_close(&d);
}

static void the_watch_asks_for_what_its_owner_selected_with_bookmarks(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    size_t cut = SIZE_MAX;
    kube_start(&s, cut_the_first, &cut);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    o.select = (struct df_kube_select){"app=x,!old", "status.phase!=Failed"};
    o.timeout_s = 7;
    struct df_kube_watch *w = start(k, &o);
    await(&d, "+c22");
    df_kube_watch_stop(w);
    const char *seen = df_buf_str(&s.seen);
    assert_non_null(strstr(seen, "GET /apis/batch/v1/namespaces/build/jobs?limit=200&labelSelector="
                                 "app%3Dx%2C%21old&fieldSelector=status.phase%21%3DFailed\n"));
    assert_non_null(strstr(seen, "GET /apis/batch/v1/namespaces/build/jobs?watch=true&"
                                 "allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=7&"));
    /* A list from the server's own cache could be old. */
    assert_null(strstr(seen, "limit=200&resourceVersion"));
    kube_stop(&s);
    diary_close(&d);
}

/* ---- 410 --------------------------------------------------------------------------------------
 */

static void forget_once(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const char *how = s->arg;
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "",
                 s->lists == 1 ? LIST("10", OBJECT("a", "5") "," OBJECT("b", "6"))
                               : LIST("30", OBJECT("a", "25")));
        return;
    }
    if (s->watches > 1) {
        kube_stream(a);
        a->hold = true;
    } else if (df_streq(how, "status")) {
        kube_status(a, 410, "Expired", "too old resource version: 10 (25)");
    } else {
        kube_stream(a);
        kube_line(a, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
                     "\"Gone\",\"message\":\"too old resource version\"}}");
        kube_stream_end(a);
    }
}

static void a_forgotten_version_is_one_list_more_at_once_and_no_failure(void **state)
{
    (void)state;
    static const char *const hows[] = {"status", "event"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(hows); i++) {
        struct kube_server s;
        struct diary d;
        char *how = strdup(hows[i]);
        kube_start(&s, forget_once, how);
        diary_open(&d);
        DF_KUBE struct df_kube *k = kube_client(&s);
        struct df_kube_watch_options o = options(&d);
        o.backoff_min_ms = o.backoff_max_ms = 3600 * 1000; /* who rests is never seen again */
        struct df_kube_watch *w = start(k, &o);
        await(&d, "+a25 listed");
        (void)pthread_mutex_lock(&s.lock);
        while (s.watches < 2)
            (void)pthread_cond_wait(&s.changed, &s.lock);
        (void)pthread_mutex_unlock(&s.lock);
        df_kube_watch_stop(w);
        assert_string_equal(df_buf_str(&d.text), "begin +a5 +b6 listed begin +a25 listed ");
        assert_int_equal(d.failures, 0);
        assert_non_null(strstr(df_buf_str(&s.seen), "resourceVersion=30&"));
        kube_stop(&s);
        assert_int_equal(s.lists, 2);
        diary_close(&d);
        free(how);
    }
}

/* ---- old things -------------------------------------------------------------------------------
 */

static void lag(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    static const char *const lists[] = {
        LIST("10", OBJECT("a", "5")),
        LIST("9", OBJECT("a", "5") "," OBJECT("gone", "8")), /* a server that lags behind */
        LIST("40", OBJECT("a", "12")),
    };
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "", lists[s->lists < 3 ? s->lists - 1 : 2]);
        return;
    }
    kube_stream(a);
    if (s->watches == 1) {
        kube_line(a, EVENT("MODIFIED", "a", "12"));
        kube_line(a, EVENT("MODIFIED", "a", "11")); /* never so by a true server */
        kube_line(a, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}");
    }
    a->hold = true;
}

static void nothing_older_than_what_was_seen_is_told(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, lag, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await(&d, "begin +a12 listed");
    df_kube_watch_stop(w);
    assert_string_equal(df_buf_str(&d.text), "begin +a5 listed +a12 begin +a12 listed ");
    assert_int_equal(d.failures, 1);
    assert_string_equal(d.last.reason, "StaleList");
    assert_non_null(strstr(d.last.message, "resourceVersion 9, but 12 was seen"));
    kube_stop(&s);
    diary_close(&d);
}

static void versions_are_compared_where_they_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *b, *a;
        bool older;
    } cases[] = {
        {"9", "10", true},
        {"10", "9", false},
        {"10", "10", false},
        {"123", "124", true},
        {"x9", "10", false},
        {"9", "x", false},
        {"", "10", false},
        {"9", "", false},
        {NULL, "1", false},
        {"1", NULL, false},
        {"18446744073709551616", "9", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_int_equal(df_kube_version_is_older(cases[i].b, cases[i].a), cases[i].older);
}

/* ---- a server in trouble ----------------------------------------------------------------------
 */

static void stumble(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        if (s->watches == 1)
            kube_line(a, "{\"type\":\"ADDED\",\"obj"); /* a line that is broken, not cut */
        else
            kube_line(a, EVENT("ADDED", "b", "11"));
        a->hold = true;
        return;
    }
    if (s->lists == 1)
        a->close = true; /* no answer at all */
    else if (s->lists == 2)
        kube_status(a, 500, "InternalError", "etcdserver: leader changed");
    else if (s->lists == 3)
        kube_say(a, 200, "", "{\"kind\":\"List\"}");
    else
        kube_say(a, 200, "", LIST("10", OBJECT("a", "5")));
}

static void what_fails_is_told_and_tried_again(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, stumble, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await(&d, "+b11");
    df_kube_watch_stop(w);
    assert_int_equal(d.failures, 4);
    assert_null(strstr(df_buf_str(&d.text), "listed listed"));
    kube_stop(&s);
    diary_close(&d);
}

static void be_away(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s, (void)r;
    kube_say(a, 429, "Retry-After: 200\r\n", "{\"kind\":\"Status\",\"code\":429}");
}

static void a_watch_stops_at_once_while_it_rests(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, be_away, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await_failures(&d, 1);
    assert_int_equal(d.last.retry_after_s, 200);
    df_kube_watch_stop(w); /* would take 200 s if it slept on */
    kube_stop(&s);
    assert_int_equal(s.lists, 1);
    diary_close(&d);
}

/* What the watch does when it is asked to list. */
enum busy_with { READING, RESTING, LISTING, BUSY_COUNT };

static void keep_busy(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const enum busy_with *with = s->arg;
    bool lists = !strstr(r->target, "watch=true");
    if (lists && s->lists > 1)
        kube_say(a, 200, "", LIST("30", OBJECT("a", "25")));
    else if (lists && *with == READING)
        kube_say(a, 200, "", LIST("10", OBJECT("a", "5")));
    else if (lists && *with == RESTING)
        be_away(s, r, a);
    else
        a->hold = true; /* a stream; or a list that is older than the question */
}

static void a_watch_that_is_asked_lists_at_once_whatever_it_does(void **state)
{
    (void)state;
    for (enum busy_with with = READING; with < BUSY_COUNT; with++) {
        struct kube_server s;
        struct diary d;
        struct df_err err = {0};
        kube_start(&s, keep_busy, &with);
        diary_open(&d);
        DF_KUBE struct df_kube *k = kube_client(&s);
        struct df_kube_watch_options o = options(&d);
        struct df_kube_watch *w = start(k, &o);
        if (with == RESTING)
            await_failures(&d, 1);
        else
            await_requests(&s, with == READING ? &s.watches : &s.lists);
        uint64_t ticket = df_kube_watch_list_anew(w);
        assert_int_equal(df_kube_watch_await(w, ticket, NULL, &err), 0);
        (void)pthread_mutex_lock(&d.lock);
        assert_non_null(strstr(df_buf_str(&d.text), "begin +a25 listed "));
        (void)pthread_mutex_unlock(&d.lock);
        df_kube_watch_stop(w);
        kube_stop(&s);
        assert_int_equal(s.lists, 2);
        assert_int_equal(d.failures, with == RESTING); /* to be interrupted is no failure */
        diary_close(&d);
    }
}

static void who_waits_for_a_list_that_does_not_come_can_be_stopped(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    struct df_err err = {0};
    bool stop = true;
    kube_start(&s, be_away, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    uint64_t ticket = df_kube_watch_list_anew(w);
    assert_int_equal(df_kube_watch_await(w, ticket, &stop, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    df_kube_watch_stop(w);
    kube_stop(&s);
    diary_close(&d);
}

static void say_nothing(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    if (!strstr(r->target, "watch=true"))
        kube_say(a, 200, "", LIST("10", ""));
    else if (s->watches == 1)
        a->hold = true; /* not even a head */
    else
        tell_history(r, a), a->hold = true;
}

static void a_silent_stream_is_replaced(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, say_nothing, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    o.idle_ms = 50;
    struct df_kube_watch *w = start(k, &o);
    await(&d, "+c22");
    df_kube_watch_stop(w);
    assert_int_equal(strstr(df_buf_str(&d.text), "begin +a5 listed begin") != NULL, 0);
    kube_stop(&s);
    assert_int_equal(s.lists, 1);
    diary_close(&d);
}

static void a_watch_stops_at_once_while_it_reads(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, say_nothing, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await_requests(&s, &s.watches);
    df_kube_watch_stop(w);
    assert_int_equal(d.failures, 0);
    kube_stop(&s);
    diary_close(&d);
}

static void what_its_owner_cannot_take_is_listed_again(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    size_t cut = SIZE_MAX;
    kube_start(&s, cut_the_first, &cut);
    diary_open(&d);
    d.refuse = 1;
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await(&d, "+c22");
    df_kube_watch_stop(w);
    assert_true(df_starts_with(df_buf_str(&d.text), "begin +a5 begin +a5 listed +b11"));
    kube_stop(&s);
    diary_close(&d);
}

static void flood(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "", LIST("10", ""));
        return;
    }
    kube_stream(a);
    a->hold = true;
    if (s->watches > 1)
        return;
    DF_BUF struct df_buf line = DF_BUF_INIT(64 * DF_MIB);
    char *fill = df_buf_reserve(&line, DF_LIMIT_KUBE_OBJECT + 1);
    memset(fill, 'x', DF_LIMIT_KUBE_OBJECT + 1);
    line.len += DF_LIMIT_KUBE_OBJECT + 1;
    line.data[line.len] = '\0';
    kube_line(a, line.data);
}

static void an_endless_line_ends_the_stream(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, flood, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_watch_options o = options(&d);
    struct df_kube_watch *w = start(k, &o);
    await(&d, "listed begin listed");
    df_kube_watch_stop(w);
    assert_int_equal(d.last.cls, DF_ERR_LIMIT);
    kube_stop(&s);
    diary_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_cut_at_any_byte_is_taken_up_where_it_was),
        cmocka_unit_test(a_server_that_knows_json_alone_is_understood),
        cmocka_unit_test(the_watch_asks_for_what_its_owner_selected_with_bookmarks),
        cmocka_unit_test(a_forgotten_version_is_one_list_more_at_once_and_no_failure),
        cmocka_unit_test(nothing_older_than_what_was_seen_is_told),
        cmocka_unit_test(versions_are_compared_where_they_are_numbers),
        cmocka_unit_test(what_fails_is_told_and_tried_again),
        cmocka_unit_test(a_watch_stops_at_once_while_it_rests),
        cmocka_unit_test(a_watch_that_is_asked_lists_at_once_whatever_it_does),
        cmocka_unit_test(who_waits_for_a_list_that_does_not_come_can_be_stopped),
        cmocka_unit_test(a_silent_stream_is_replaced),
        cmocka_unit_test(a_watch_stops_at_once_while_it_reads),
        cmocka_unit_test(what_its_owner_cannot_take_is_listed_again),
        cmocka_unit_test(an_endless_line_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
