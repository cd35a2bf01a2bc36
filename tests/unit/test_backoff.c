/* The rest between tries that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"

static void the_back_off_doubles_up_to_its_cap(void **state)
{
    (void)state;
    assert_int_equal(df_backoff(10, 3000, 1), 10);
    assert_int_equal(df_backoff(10, 3000, 2), 20);
    assert_int_equal(df_backoff(10, 3000, 5), 160);
    assert_int_equal(df_backoff(10, 3000, 50), 3000);
    assert_int_equal(df_backoff(10, 3000, INT32_MAX), 3000);
}

static int fill; /* what chance is made of; -1: there is none */

static int fill_random(void *bytes, size_t n)
{
    if (fill < 0)
        return -1;
    memset(bytes, fill, n);
    return 0;
}

static int64_t now(void)
{
    return 0;
}

static void chance_takes_up_to_a_half_of_it(void **state)
{
    (void)state;
    static const struct df_clock dice = {now, now, fill_random};
    static const struct {
        int fill;
        int64_t pause;
    } cases[] = {{0, 50}, {0x80, 75}, {0xff, 100}, {-1, 100}};
    df_clock_install(&dice);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fill = cases[i].fill;
        assert_int_equal(df_backoff_pause(100, 100, 1), cases[i].pause);
    }
    df_clock_install(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_back_off_doubles_up_to_its_cap),
        cmocka_unit_test(chance_takes_up_to_a_half_of_it),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
