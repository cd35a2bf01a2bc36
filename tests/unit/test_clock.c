#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"

#define SECOND INT64_C(1000000)

static void times_are_written_in_rfc_3339_with_microseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {1, "1970-01-01T00:00:00.000001Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {-1000000, "1969-12-31T23:59:59.000000Z"},
        {1795251001123456, "2026-11-21T08:50:01.123456Z"},
        {951782400 * SECOND, "2000-02-29T00:00:00.000000Z"},
        {253402300799 * SECOND, "9999-12-31T23:59:59.000000Z"},
        {253402300800 * SECOND, "0000-01-01T00:00:00.000000Z"},
        {INT64_MAX, "0000-01-01T00:00:00.000000Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000000Z"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        char out[DF_TIME_LEN];
        assert_string_equal(df_time_format(cases[i].us, out), cases[i].text);
    }
}

static void times_are_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.5Z", 500000},
        {"1970-01-01 00:00:00.000001999z", 1},
        {"1970-01-01t00:00:01+00:00", SECOND},
        {"1970-01-01T01:00:00+01:00", 0},
        {"1969-12-31T23:30:00-00:30", 0},
        {"2000-02-29T00:00:00Z", 951782400 * SECOND},
        {"2016-12-31T23:59:60Z", 1483228800 * SECOND},
        {"2026-11-21T08:50:01.123456Z", 1795251001123456},
        {"1969-12-31T23:59:59.999999Z", -1},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        int64_t us = 0;
        assert_int_equal(df_time_parse(cases[i].text, &us, NULL), 0);
        assert_true(us == cases[i].us);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "now",
        "2026-11-21",
        "2026-11-21T08:50:01",
        "2026-11-21T08:50Z",
        "2026-11-21T08:50:01.Z",
        "2026-11-21T08:50:01ZZ",
        "2026-11-21T08:50:01Z ",
        " 2026-11-21T08:50:01Z",
        "2026-1-21T08:50:01Z",
        "2026-13-21T08:50:01Z",
        "2026-00-21T08:50:01Z",
        "2026-02-29T08:50:01Z",
        "1900-02-29T08:50:01Z",
        "2026-04-31T08:50:01Z",
        "2026-11-00T08:50:01Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T08:60:01Z",
        "2026-11-21T08:50:61Z",
        "2026-11-21T08:50:01+24:00",
        "2026-11-21T08:50:01+01:60",
        "2026-11-21T08:50:01+0100",
        "2026-11-21T08:50:01+1:00",
        "2026-11-21X08:50:01Z",
        "+026-11-21T08:50:01Z",
        "2026-11- 1T08:50:01Z",
        "2026-11-21T 8:50:01Z",
        "2026-11-21T-8:50:01Z",
        "10000-01-01T00:00:00Z",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_err err = {0};
        int64_t us = 42;
        if (df_time_parse(texts[i], &us, &err) == 0)
            fail_msg("accepted: \"%s\"", texts[i]);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_true(us == 42);
    }
}

static void durations_are_read_as_go_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"0s", 0},
        {"90s", 90 * SECOND},
        {"1h30m", 5400 * SECOND},
        {"1.5h", 5400 * SECOND},
        {"250ms", 250000},
        {"1m0.5s", 60500000},
        {"3us", 3},
        {"1500ns", 2},
        {".5s", 500000},
        {"5.s", 5 * SECOND},
        {"168h", 604800 * SECOND},
        {"1h1m1s1ms1us", 3661001001},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        int64_t us = 42;
        assert_int_equal(df_duration_parse(cases[i].text, &us, NULL), 0);
        assert_true(us == cases[i].us);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "5",
                                        "s",     "-5s",
                                        "+5s",   " 5s",
                                        "5s ",   "5 s",
                                        "5d",    "5x",
                                        "1h30",  "0x5s",
                                        "1e3s",  "infs",
                                        "nans",  "1.2.3s",
                                        ".s",    ".",
                                        "5mss",  "5sm",
                                        "1h-5m", "99999999999999999999h",
                                        "5M",    "5S"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        /* Exactly sized, so that a sanitizer sees a read beyond. */
        DF_FREE char *exact = strdup(texts[i]);
        struct df_err err = {0};
        int64_t us = 42;
        if (df_duration_parse(exact, &us, &err) == 0)
            fail_msg("accepted: \"%s\"", exact);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_true(us == 42);
    }
}

static void a_refused_duration_hears_what_to_say_instead(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"30d", "\"30d\" is not a duration: h is the longest unit, say 720h"},
        {"1w1d12h", "\"1w1d12h\" is not a duration: h is the longest unit, say 204h"},
        {"1d30m", "\"1d30m\" is not a duration: h is the longest unit, say 24.5h"},
        {"-3h", "\"-3h\" is negative: a duration must be positive"},
        {"-30d", "\"-30d\" is negative: a duration must be positive"},
        {"30 days", "\"30 days\" is not a duration (250ms, 90s, 1h30m; a day is 24h)"},
        {"-soon", "\"-soon\" is not a duration (250ms, 90s, 1h30m; a day is 24h)"},
        {"99999999999d", "duration \"99999999999d\" is too long"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        int64_t us = 0;
        assert_int_equal(df_duration_parse(cases[i].text, &us, &err), -1);
        assert_string_equal(err.message, cases[i].says);
    }
}

static void uuids_are_of_version_4_and_differ(void **state)
{
    (void)state;
    char a[37], b[37];
    assert_int_equal(df_uuid(a, NULL), 0);
    assert_int_equal(df_uuid(b, NULL), 0);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
}

static void random_hex_is_as_long_as_asked(void **state)
{
    (void)state;
    char out[129];
    assert_int_equal(df_random_hex(out, 64, NULL), 0);
    assert_int_equal(strlen(out), 128);
    assert_int_equal(strspn(out, "0123456789abcdef"), 128);
    assert_int_equal(df_random_hex(out, 0, NULL), 0);
    assert_string_equal(out, "");
}

static int64_t fixed_time(void)
{
    return 5 * SECOND;
}

static int broken_random(void *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    errno = EIO;
    return -1;
}

static void another_clock_can_be_installed(void **state)
{
    (void)state;
    static const struct df_clock clock = {fixed_time, fixed_time, broken_random};
    struct df_err err = {0};
    char out[37] = "as it was";
    df_clock_install(&clock);
    int64_t mono = df_mono_us(), ms = df_mono_ms(), real = df_real_us();
    int failed = df_uuid(out, &err) + df_random_hex(out, 4, &err);
    df_clock_install(NULL);
    assert_true(mono == 5 * SECOND && ms == 5000 && real == 5 * SECOND);
    assert_int_equal(failed, -2);
    assert_int_equal(err.os_errno, EIO);
    assert_string_equal(out, "as it was");
    assert_true(df_real_us() > 1700000000 * SECOND);
}

static void the_monotonic_clock_does_not_go_back(void **state)
{
    (void)state;
    int64_t before = df_mono_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now = df_mono_us();
        assert_true(now >= before);
        before = now;
    }
}

static void a_deadline_lies_that_far_ahead_and_never_behind(void **state)
{
    (void)state;
    static const int64_t cases[] = {-5, 0, 1, 999999, 1000000, 3600999999};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct timespec before, until, after;
        (void)clock_gettime(CLOCK_MONOTONIC, &before);
        until = df_mono_after_us(cases[i]);
        (void)clock_gettime(CLOCK_MONOTONIC, &after);
        int64_t us = cases[i] > 0 ? cases[i] : 0;
        int64_t from_before =
            (int64_t)(until.tv_sec - before.tv_sec) * 1000000000 + (until.tv_nsec - before.tv_nsec);
        int64_t from_after =
            (int64_t)(until.tv_sec - after.tv_sec) * 1000000000 + (until.tv_nsec - after.tv_nsec);
        assert_true(from_before >= us * 1000 && from_after <= us * 1000);
        assert_in_range(until.tv_nsec, 0, 999999999);
    }
}

static void seconds_of_somebody_else_can_be_added_to_a_time(void **state)
{
    (void)state;
    static const int64_t cases[][2] = {{-INT64_C(9007199254740991), 0},
                                       {-1, 0},
                                       {0, 0},
                                       {3600, INT64_C(3600000000)},
                                       {INT64_C(9007199254740991), INT64_C(1000000000000000000)},
                                       {INT64_MAX, INT64_C(1000000000000000000)}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_int_equal(df_seconds_us(cases[i][0]), cases[i][1]);
    assert_true(df_real_us() + df_seconds_us(INT64_MAX) > df_real_us());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_written_in_rfc_3339_with_microseconds),
        cmocka_unit_test(times_are_read_back),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(durations_are_read_as_go_writes_them),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(a_refused_duration_hears_what_to_say_instead),
        cmocka_unit_test(uuids_are_of_version_4_and_differ),
        cmocka_unit_test(random_hex_is_as_long_as_asked),
        cmocka_unit_test(another_clock_can_be_installed),
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
        cmocka_unit_test(seconds_of_somebody_else_can_be_added_to_a_time),
        cmocka_unit_test(a_deadline_lies_that_far_ahead_and_never_behind),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
