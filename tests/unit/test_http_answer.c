#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/http/http.h"
#include "common/http/target.h"

static void targets_are_trusted_by_origin_and_never_fall_back_to_plain_http(void **state)
{
    (void)state;
    static const struct {
        const char *from, *location;
        bool ok, trusted;
        const char *shown;
    } cases[] = {
        {"https://a.example/x", "/y?z=1", true, true, "https://a.example/y"},
        {"https://a.example/x", "https://A.example:443/y", true, true, "https://A.example:443/y"},
        {"https://a.example/x", "https://b.example/y", true, false, "https://b.example/y"},
        {"https://a.example/x", "https://a.example:8443/y", true, false,
         "https://a.example:8443/y"},
        {"http://a.example/x", "https://a.example/y", true, false, "https://a.example/y"},
        {"https://a.example/x", "http://a.example/y", false, false, NULL},
        {"https://a.example/x", "//b.example/y", true, false, "https://b.example/y"},
        {"https://a.example/x", "file:///etc/passwd", false, false, NULL},
        {"https://a.example/x", "ftp://a.example/", false, false, NULL},
        {"https://a.example/x", "https://u:p@a.example/", false, false, NULL},
        {"http://a.example/x", "file:///etc/passwd", false, false, NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_HTTP_TARGET struct df_http_target t = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_target_parse(cases[i].from, true, &t, &err), 0);
        int result = df_http_target_redirect(&t, cases[i].location, &err);
        assert_int_equal(result, cases[i].ok ? 0 : -1);
        if (cases[i].ok) {
            assert_int_equal(t.trusted, cases[i].trusted);
            assert_string_equal(t.shown, cases[i].shown);
        } else {
            assert_int_equal(err.cls, DF_ERR_USER);
        }
    }
}

static void loopback_is_recognised_in_all_its_forms(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool loopback;
    } cases[] = {
        {"http://127.0.0.1:80/", true}, {"http://127.9.9.9/", true},
        {"http://localhost/", true},    {"http://LOCALHOST:1/", true},
        {"http://[::1]:8080/", true},   {"http://128.0.0.1/", false},
        {"http://localhost.x/", false}, {"http://127.0.0.1.example/", false},
        {"http://[::2]/", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_HTTP_TARGET struct df_http_target t = {0};
        assert_int_equal(df_http_target_parse(cases[i].url, false, &t, NULL), 0);
        assert_int_equal(t.loopback, cases[i].loopback);
    }
}

static void check_turns_statuses_and_problems_into_failures(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *type, *body;
        enum df_err_class cls;
        const char *reason, *message;
    } cases[] = {
        {400, "", "", DF_ERR_USER, "", "read: HTTP 400"},
        {401, "", "", DF_ERR_DENIED, "", "read: HTTP 401"},
        {403, "text/html", "<html>", DF_ERR_DENIED, "", "read: HTTP 403"},
        {404, "text/plain", "no such\tthing\nmore", DF_ERR_NOT_FOUND, "",
         "read: HTTP 404: no such thing"},
        {409, "application/problem+json",
         "{\"type\":\"https://dayfly.dev/problems/AlreadyClaimed\",\"title\":\"Claimed\","
         "\"detail\":\"by another\"}",
         DF_ERR_CONFLICT, "AlreadyClaimed", "read: Claimed: by another (HTTP 409)"},
        {423, "application/problem+json; charset=utf-8", "{\"type\":\"urn:x:Locked\"}",
         DF_ERR_CONFLICT, "Locked", "read: failed (HTTP 423)"},
        {413, "application/problem+json", "{\"type\":\"about:blank\",\"title\":\"Too large\"}",
         DF_ERR_LIMIT, "", "read: Too large (HTTP 413)"},
        {422, "application/problem+json", "{\"type\":\"#no word!\",\"detail\":\"d\"}", DF_ERR_USER,
         "", "read: d (HTTP 422)"},
        {429, "application/problem+json", "{broken", DF_ERR_RETRY, "", "read: HTTP 429"},
        {500, "application/problem+json", "[]", DF_ERR_SYSTEM, "", "read: failed (HTTP 500)"},
        {503, "application/problem+json", "{\"type\":7,\"title\":[],\"detail\":{}}", DF_ERR_RETRY,
         "", "read: failed (HTTP 503)"},
        {599, "", "", DF_ERR_SYSTEM, "", "read: HTTP 599"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_HTTP_RESPONSE struct df_http_response r = {.status = cases[i].status,
                                                      .body = DF_BUF_INIT(1000)};
        (void)snprintf(r.content_type, sizeof(r.content_type), "%s", cases[i].type);
        assert_int_equal(df_buf_adds(&r.body, cases[i].body), 0);
        struct df_err err = {0};
        assert_int_equal(df_http_check(&r, "read", &err), -1);
        assert_int_equal(err.cls, cases[i].cls);
        assert_string_equal(err.reason, cases[i].reason);
        assert_string_equal(err.message, cases[i].message);
    }
    struct df_http_response fine = {.status = 399};
    assert_int_equal(df_http_check(&fine, "read", NULL), 0);
}

static void escaping_leaves_only_unreserved_characters(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"aZ09-._~", "aZ09-._~"},
        {"a b/c?d=e&f%", "a%20b%2Fc%3Fd%3De%26f%25"},
        {"\xc3\xa9\x01", "%C3%A9%01"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *got = df_url_escape(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
    }
}

static void a_parameter_is_added_to_the_query_or_begins_it(void **state)
{
    DF_BUF struct df_buf url = DF_BUF_INIT(100);
    (void)state;
    (void)df_buf_adds(&url, "https://x/y");
    df_url_add_parameter(&url, "a", "1 2");
    df_url_add_parameter(&url, "b", "");
    assert_string_equal(df_buf_str(&url), "https://x/y?a=1%202&b=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_trusted_by_origin_and_never_fall_back_to_plain_http),
        cmocka_unit_test(loopback_is_recognised_in_all_its_forms),
        cmocka_unit_test(check_turns_statuses_and_problems_into_failures),
        cmocka_unit_test(escaping_leaves_only_unreserved_characters),
        cmocka_unit_test(a_parameter_is_added_to_the_query_or_begins_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
