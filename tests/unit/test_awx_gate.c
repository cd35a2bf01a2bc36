/* How many requests wait for one AWX. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/ansible/awx_gate.h"
#include "tests/unit/ansible_world.h"

static int open_gate(void **state)
{
    struct df_awx_gate *g = calloc(1, sizeof(*g));
    df_awx_gate_init(g);
    world_later(0);
    *state = g;
    return 0;
}

static int close_gate(void **state)
{
    df_awx_gate_destroy(*state);
    free(*state);
    df_clock_install(NULL);
    return 0;
}

static void so_many_requests_wait_at_once_and_no_more(void **state)
{
    struct df_awx_gate *g = *state;
    struct df_err err = {0};
    for (int i = 0; i < DF_AWX_AT_ONCE; i++)
        assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    assert_failed(df_awx_gate_enter(g, &err), &err, DF_ERR_RETRY, "",
                  "4 requests to AWX wait for its answer");
    df_awx_gate_leave(g, df_mono_us(), true);
    assert_int_equal(df_awx_gate_enter(g, NULL), 0);
}

static void *leave(void *arg)
{
    (void)usleep(10000);
    df_awx_gate_leave(arg, df_mono_us(), true);
    return NULL;
}

static void the_next_one_waits_for_its_turn(void **state)
{
    struct df_awx_gate *g = *state;
    pthread_t thread;
    for (int i = 0; i < DF_AWX_AT_ONCE; i++)
        assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, leave, g), 0);
    assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    (void)pthread_join(thread, NULL);
}

static void an_awx_that_does_not_answer_is_asked_later_by_one(void **state)
{
    struct df_awx_gate *g = *state;
    struct df_err err = {0};
    for (int i = 0; i < 2; i++)
        assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    int64_t began_us = df_mono_us();
    world_later(30);
    df_awx_gate_leave(g, began_us, false);
    df_awx_gate_leave(g, began_us, false);
    assert_failed(df_awx_gate_enter(g, &err), &err, DF_ERR_RETRY, "", "AWX did not answer");
    assert_true(err.retry_after_s > 0 && err.retry_after_s <= 15);
    world_later(16);
    assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    assert_int_equal(df_awx_gate_enter(g, NULL), -1);
    df_awx_gate_leave(g, df_mono_us(), true);
    for (int i = 0; i < DF_AWX_AT_ONCE; i++)
        assert_int_equal(df_awx_gate_enter(g, NULL), 0);
}

static void a_connection_that_is_refused_closes_nothing(void **state)
{
    struct df_awx_gate *g = *state;
    assert_int_equal(df_awx_gate_enter(g, NULL), 0);
    df_awx_gate_leave(g, df_mono_us(), false);
    assert_int_equal(df_awx_gate_enter(g, NULL), 0);
}

/* ---- the engine ---- */

enum { CALLERS = 12 };

struct caller {
    struct world *w;
    atomic_int *refused;
    pthread_t thread;
    int result;
};

static void *check_engine(void *arg)
{
    struct caller *c = arg;
    c->result = c->w->engine->ops->check(c->w->engine, NULL);
    if (c->result < 0)
        atomic_fetch_add(c->refused, 1);
    return NULL;
}

static void an_awx_that_does_not_answer_holds_few_threads(void **state)
{
    struct world *w = *state;
    struct caller callers[CALLERS];
    atomic_int refused = 0;
    int ok = 0;
    awx_set_silent(&w->awx, true);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.w = w, .refused = &refused};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, check_engine, &callers[i]), 0);
    }
    while (atomic_load(&refused) + awx_waiting(&w->awx) < CALLERS)
        (void)usleep(1000);
    int waiting = awx_waiting(&w->awx);
    awx_set_silent(&w->awx, false);
    for (int i = 0; i < CALLERS; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        ok += callers[i].result == 0;
    }
    assert_int_equal(waiting, DF_AWX_AT_ONCE);
    assert_int_equal(ok, DF_AWX_AT_ONCE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_gate, close_gate)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(so_many_requests_wait_at_once_and_no_more),
        TEST(the_next_one_waits_for_its_turn),
        TEST(an_awx_that_does_not_answer_is_asked_later_by_one),
        TEST(a_connection_that_is_refused_closes_nothing),
        cmocka_unit_test_setup_teardown(an_awx_that_does_not_answer_holds_few_threads, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
