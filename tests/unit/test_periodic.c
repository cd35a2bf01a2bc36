#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/periodic.h"

#define HOUR_US INT64_C(3600000000)

struct times {
    atomic_int count;
    int64_t pause_us;
};

static int64_t count_one(void *arg)
{
    struct times *t = arg;
    atomic_fetch_add(&t->count, 1);
    return t->pause_us;
}

static struct df_periodic *start(struct times *t, int64_t pause_us)
{
    struct df_periodic *p = NULL;
    assert_int_equal(df_periodic_start(count_one, t, pause_us, &p, NULL), 0);
    return p;
}

static void await(struct times *t, int count)
{
    while (atomic_load(&t->count) < count)
        (void)usleep(500);
}

static void the_work_is_done_again_and_again(void **state)
{
    (void)state;
    struct times t = {.pause_us = 100};
    struct df_periodic *p = start(&t, 0);
    await(&t, 3);
    df_periodic_stop(p);
    int count = atomic_load(&t.count);
    (void)usleep(2000);
    assert_int_equal(atomic_load(&t.count), count);
}

static void a_stop_ends_a_pause(void **state)
{
    (void)state;
    struct times before = {.pause_us = HOUR_US}, between = {.pause_us = HOUR_US};
    struct df_periodic *p = start(&before, HOUR_US);
    df_periodic_stop(p);
    assert_int_equal(atomic_load(&before.count), 0);
    p = start(&between, 0);
    await(&between, 1);
    df_periodic_stop(p);
    assert_int_equal(atomic_load(&between.count), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_work_is_done_again_and_again),
        cmocka_unit_test(a_stop_ends_a_pause),
    };
    return cmocka_run_group_tests_name("periodic", tests, NULL, NULL);
}
