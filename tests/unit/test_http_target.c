/* What a request may go to, and where a redirect may lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/http/http.h"
#include "common/http/target.h"

static void a_redirect_from_elsewhere_does_not_lead_to_this_machine_or_its_link(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        bool refused;
    } cases[] = {
        {"http://mirror.example/x", "http://127.0.0.1/", true},
        {"http://mirror.example/x", "http://127.9.9.9:8030/v1/secrets", true},
        {"http://mirror.example/x", "http://localhost:8030/", true},
        {"http://mirror.example/x", "http://LOCALHOST/", true},
        {"http://mirror.example/x", "http://2130706433/", true},
        {"http://mirror.example/x", "http://0x7f.1/", true},
        {"http://mirror.example/x", "http://0.0.0.0/", true},
        {"http://mirror.example/x", "http://[::1]/", true},
        {"http://mirror.example/x", "http://[::]/", true},
        {"http://mirror.example/x", "http://[::ffff:127.0.0.1]/", true},
        {"http://mirror.example/x", "http://169.254.169.254/latest", true},
        {"http://127.0.0.1:1/x", "http://169.254.169.254/latest", true},
        {"http://mirror.example/x", "http://[::ffff:169.254.169.254]/", true},
        {"http://mirror.example/x", "http://[fe80::1]/", true},
        {"http://mirror.example/x", "http://[fd00:ec2::254]/", true},
        {"http://mirror.example/x", "https://other.example/x", false},
        {"http://mirror.example/x", "http://10.0.0.7/x", false},
        {"http://mirror.example/x", "/y", false},
        {"http://127.0.0.1:1/x", "http://127.0.0.1:2/y", false},
        {"http://127.0.0.1:1/x", "http://localhost:2/y", false},
        {"http://169.254.3.4/x", "/y", false},
        {"http://169.254.3.4/x", "http://169.254.3.5/y", true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_HTTP_TARGET struct df_http_target t = {0};
        struct df_err err = {0};
        assert_int_equal(df_http_target_parse(cases[i].from, false, &t, NULL), 0);
        bool refused = df_http_target_redirect(&t, cases[i].to, &err) < 0;
        if (refused != cases[i].refused)
            fail_msg("%s to %s: %s", cases[i].from, cases[i].to,
                     refused ? err.message : "followed");
        if (refused)
            assert_non_null(strstr(err.message, "this machine or its link is refused"));
    }
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {"https://a.example/x", "HTTPS://A.example:443/y?z", true},
        {"http://a.example", "http://a.example:80", true},
        {"http://a.example:80", "https://a.example:80", false},
        {"http://a.example", "http://a.example:8080", false},
        {"http://a.example", "http://b.example", false},
        {"http://a.example", "http://a.example@b.example", false},
        {"http://a.example", "http://u@a.example", false},
        {"file:///x", "file:///x", false},
        {"", "", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (df_url_same_origin(cases[i].one, cases[i].other) != cases[i].same)
            fail_msg("%s and %s", cases[i].one, cases[i].other);
}

static void what_goes_to_a_safe_url_is_read_by_nobody_on_the_way(void **state)
{
    (void)state;
    static const char *const safe[] = {"https://id.example.com",    "https://id.example.com:8443/a",
                                       "http://127.0.0.1:5556/dex", "http://localhost",
                                       "http://LOCALHOST:80/",      "http://[::1]:5556"};
    static const char *const others[] = {"http://id.example.com",
                                         "http://localhost.example.com",
                                         "http://127.0.0.1.example.com/",
                                         "https://me:pw@id.example.com",
                                         "file:///etc/passwd",
                                         "id.example.com",
                                         ""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(safe); i++)
        assert_true(df_url_is_safe(safe[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        assert_false(df_url_is_safe(others[i]));
}

static void a_url_that_is_missing_is_out_of_memory(void **state)
{
    (void)state;
    struct df_http_target t = {0};
    struct df_err err = {0};
    assert_int_equal(df_http_target_parse(NULL, false, &t, &err), -1);
    assert_string_equal(err.message, "out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_that_is_missing_is_out_of_memory),
        cmocka_unit_test(what_goes_to_a_safe_url_is_read_by_nobody_on_the_way),
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(a_redirect_from_elsewhere_does_not_lead_to_this_machine_or_its_link),
    };
    return cmocka_run_group_tests_name("http targets", tests, NULL, NULL);
}
