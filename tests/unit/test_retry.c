/* When a call is repeated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/retry.h"
#include "tests/unit/heard.h"

/* Each look at the clock takes ten seconds, so that no test waits for long. */
enum { TICK_MS = 10000 };
static int64_t ticking_us;

static int64_t tick(void)
{
    return ticking_us += TICK_MS * INT64_C(1000);
}

static int fill_random(void *bytes, size_t n)
{
    memset(bytes, 0, n);
    return 0;
}

static const struct df_clock ticking = {tick, tick, fill_random};

static int set_up(void **state)
{
    (void)state;
    ticking_us = 0;
    df_clock_install(&ticking);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    df_clock_install(NULL);
    return 0;
}

static void only_what_may_pass_is_repeated(void **state)
{
    struct df_retry p = df_retry_begin(3600 * 1000, NULL);
    (void)state;
    for (int cls = DF_ERR_USER; cls <= DF_ERR_BUG; cls++) {
        const struct df_err why = {.cls = (enum df_err_class)cls};
        assert_int_equal(df_retry_again(&p, &why), cls == DF_ERR_RETRY);
    }
}

static void it_ends_when_a_pause_would_be_longer(void **state)
{
    const struct df_err why = {.cls = DF_ERR_RETRY};
    struct df_retry p = df_retry_begin(60 * 1000, NULL), none = df_retry_begin(0, NULL);
    int tries = 0;
    (void)state;
    assert_false(df_retry_again(&none, &why));
    while (df_retry_again(&p, &why))
        tries++;
    assert_in_range(tries, 1, 60 * 1000 / TICK_MS);
}

static void a_busy_peer_is_left_alone_as_long_as_it_asks_for(void **state)
{
    const struct df_err why = {.cls = DF_ERR_RETRY, .retry_after_s = 20},
                        absurd = {.cls = DF_ERR_RETRY, .retry_after_s = 86400};
    struct df_retry p = df_retry_begin(600 * 1000, NULL);
    (void)state;
    int64_t begin = df_mono_ms();
    assert_true(df_retry_again(&p, &why));
    int64_t first = df_mono_ms();
    assert_in_range(first - begin, 20 * 1000, 20 * 1000 + 3 * TICK_MS);
    assert_true(df_retry_again(&p, &absurd));
    assert_in_range(df_mono_ms() - first, 60 * 1000, 60 * 1000 + 3 * TICK_MS);
}

static void whoever_stops_does_not_wait(void **state)
{
    const struct df_err why = {.cls = DF_ERR_RETRY, .retry_after_s = 60};
    volatile bool stop = true;
    struct df_retry p = df_retry_begin(3600 * 1000, &stop);
    (void)state;
    assert_false(df_retry_again(&p, &why));
    assert_true(df_mono_ms() <= 5 * TICK_MS);
}

/* ---- who hears of it ---- */

static void a_wait_is_told_once_when_it_begins_and_once_when_it_is_over(void **state)
{
    struct heard h = {.what = "the peer"};
    const struct df_wait_listener listener = listen_to(&h);
    const struct df_err why = {.cls = DF_ERR_RETRY, .message = "nobody is there"};
    struct df_retry p = df_retry_begin(3600 * 1000, NULL);
    (void)state;
    p.listener = &listener;
    p.what = "the peer";
    df_retry_succeeded(&p);
    assert_int_equal(h.over, 0); /* it did not wait */
    for (int i = 0; i < 3; i++)
        assert_true(df_retry_again(&p, &why));
    df_retry_succeeded(&p);
    assert_int_equal(h.begun, 1);
    assert_int_equal(h.over, 1);
    assert_string_equal(h.why.message, "nobody is there");
    assert_in_range(h.ms, 3500 * 1000, 3600 * 1000);
}

static void what_is_not_repeated_is_no_wait(void **state)
{
    struct heard h = {.what = "the peer"};
    const struct df_wait_listener listener = listen_to(&h);
    const struct df_err away = {.cls = DF_ERR_RETRY}, refused = {.cls = DF_ERR_DENIED};
    struct df_retry none = df_retry_begin(0, NULL), p = df_retry_begin(60 * 1000, NULL);
    (void)state;
    none.listener = p.listener = &listener;
    assert_false(df_retry_again(&none, &away));
    assert_false(df_retry_again(&p, &refused));
    assert_int_equal(h.begun, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_what_may_pass_is_repeated),
        TEST(it_ends_when_a_pause_would_be_longer),
        TEST(a_busy_peer_is_left_alone_as_long_as_it_asks_for),
        TEST(whoever_stops_does_not_wait),
        TEST(a_wait_is_told_once_when_it_begins_and_once_when_it_is_over),
        TEST(what_is_not_repeated_is_no_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
