/* The queue: one key once, one worker a key, back-off after failures. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "spawner/control/queue.h"

static struct df_queue *new_queue(void)
{
    struct df_queue *q = NULL;
    assert_int_equal(df_queue_new(&q, NULL), 0);
    return q;
}

static void add(struct df_queue *q, const char *name, int64_t delay_us)
{
    assert_int_equal(df_queue_add(q, DF_KIND_RUN, name, delay_us, NULL), 0);
}

static struct df_queue_key get(struct df_queue *q)
{
    struct df_queue_key key = {0};
    assert_true(df_queue_get(q, &key));
    return key;
}

/* Nothing is due: another key, added now, is what comes out. */
static void assert_nothing_due(struct df_queue *q)
{
    add(q, "probe", 0);
    struct df_queue_key key = get(q);
    assert_string_equal(key.name, "probe");
    df_queue_done(q, &key, 0);
}

static void keys_come_out_in_the_order_they_went_in(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    static const char *const names[] = {"c", "a", "b", "e", "d"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        add(q, names[i], 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        struct df_queue_key key = get(q);
        assert_string_equal(key.name, names[i]);
        df_queue_done(q, &key, 0);
    }
    df_queue_free(q);
}

static void a_key_added_many_times_comes_out_once(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    for (int i = 0; i < 100; i++)
        add(q, "net-1", 0);
    struct df_queue_key key = get(q);
    df_queue_done(q, &key, 0);
    assert_nothing_due(q);
    df_queue_free(q);
}

static void the_same_name_of_another_kind_is_another_key(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "net", 0);
    assert_int_equal(df_queue_add(q, DF_KIND_TASK_ACTION, "net", 0, NULL), 0);
    struct df_queue_key one = get(q), two = get(q);
    assert_int_equal(one.kind, DF_KIND_RUN);
    assert_int_equal(two.kind, DF_KIND_TASK_ACTION);
    df_queue_done(q, &one, 0);
    df_queue_done(q, &two, 0);
    df_queue_free(q);
}

/* The second pass sees what was written in the meantime. */
static void a_key_that_is_worked_on_is_not_given_out_twice_but_once_more_afterwards(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "net-1", 0);
    struct df_queue_key key = get(q);
    add(q, "net-1", 0);
    add(q, "net-1", 0);
    assert_nothing_due(q);
    df_queue_done(q, &key, 0);
    key = get(q);
    assert_string_equal(key.name, "net-1");
    df_queue_done(q, &key, 0);
    assert_nothing_due(q);
    df_queue_free(q);
}

static void a_delayed_key_waits_and_an_earlier_time_wins(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "late", 3600 * (int64_t)1000000);
    assert_nothing_due(q);
    add(q, "late", 2000);
    add(q, "late", 3600 * (int64_t)1000000);
    int64_t before = df_mono_us();
    struct df_queue_key key = get(q);
    assert_string_equal(key.name, "late");
    assert_true(df_mono_us() >= before);
    df_queue_done(q, &key, 0);
    df_queue_free(q);
}

static void a_delay_asked_for_while_working_counts_after_done(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "net-1", 0);
    struct df_queue_key key = get(q);
    add(q, "net-1", 1000);
    df_queue_done(q, &key, 0);
    key = get(q);
    assert_string_equal(key.name, "net-1");
    df_queue_done(q, &key, 0);
    df_queue_free(q);
}

static void a_failure_comes_back_by_itself_and_success_forgets_it(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "net-1", 0);
    for (int i = 0; i < 3; i++) {
        struct df_queue_key key = get(q);
        assert_string_equal(key.name, "net-1");
        df_queue_done(q, &key, -1);
    }
    struct df_queue_key key = get(q);
    df_queue_done(q, &key, 0);
    assert_nothing_due(q);
    df_queue_free(q);
}

/* A pass that writes down why it has to wait is not to be repeated for that alone. */
static void what_a_worker_changed_itself_counts_unless_it_pauses(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "net-1", 0);
    struct df_queue_key key = get(q);
    df_queue_changed(q, DF_KIND_RUN, "net-1");
    df_queue_done(q, &key, 0);
    key = get(q);
    df_queue_changed(q, DF_KIND_RUN, "net-1");
    df_queue_changed(q, DF_KIND_RUN, "net-2");
    df_queue_done(q, &key, DF_QUEUE_PAUSE);
    key = get(q);
    assert_string_equal(key.name, "net-2");
    df_queue_done(q, &key, 0);
    assert_true(df_queue_is_idle(q));
    df_queue_free(q);
}

static void *change_net_1(void *arg)
{
    df_queue_changed(arg, DF_KIND_RUN, "net-1");
    return NULL;
}

static void what_others_changed_meanwhile_counts_also_for_a_pass_that_pauses(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    pthread_t other;
    add(q, "net-1", 0);
    struct df_queue_key key = get(q);
    df_queue_changed(q, DF_KIND_RUN, "net-1");
    assert_int_equal(pthread_create(&other, NULL, change_net_1, q), 0);
    (void)pthread_join(other, NULL);
    df_queue_done(q, &key, DF_QUEUE_PAUSE);
    key = get(q);
    assert_string_equal(key.name, "net-1");
    df_queue_done(q, &key, 0);
    assert_nothing_due(q);
    df_queue_free(q);
}

static void a_queue_is_idle_when_nothing_is_due_and_nobody_works(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    assert_true(df_queue_is_idle(q));
    add(q, "later", INT64_C(3600000000));
    assert_true(df_queue_is_idle(q));
    add(q, "now", 0);
    assert_false(df_queue_is_idle(q));
    struct df_queue_key key = get(q);
    assert_false(df_queue_is_idle(q));
    df_queue_done(q, &key, 0);
    assert_true(df_queue_is_idle(q));
    df_queue_free(q);
}

static void thousands_of_keys_come_out_by_their_due_times(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    /* Due in the past, ten seconds apart: all are due, and their order does not depend on how long
     * adding them takes. */
    for (int i = 0; i < 5000; i++) {
        char name[32];
        int shuffled = i * 7919 % 5000; /* 7919 is prime: every number once */
        (void)snprintf(name, sizeof(name), "k%d", shuffled);
        add(q, name, (shuffled - 6000) * INT64_C(10000000));
    }
    int last = -1;
    for (int i = 0; i < 5000; i++) {
        struct df_queue_key key = get(q);
        int n = 0;
        assert_int_equal(sscanf(key.name, "k%d", &n), 1);
        assert_true(n > last);
        last = n;
        df_queue_done(q, &key, 0);
    }
    df_queue_free(q);
}

static void *get_in_thread(void *q)
{
    struct df_queue_key key;
    return df_queue_get(q, &key) ? q : NULL;
}

static void closing_sends_sleeping_workers_home(void **state)
{
    (void)state;
    struct df_queue *q = new_queue();
    add(q, "late", 3600 * (int64_t)1000000);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_in_thread, q), 0);
    df_queue_close(q);
    for (size_t i = 0; i < 4; i++) {
        void *got = q;
        (void)pthread_join(threads[i], &got);
        assert_null(got);
    }
    add(q, "after", 0);
    struct df_queue_key key;
    assert_false(df_queue_get(q, &key));
    df_queue_free(q);
}

/* ---- many threads: run under TSan ---- */

#define KEYS 16
#define ADDS 4000
#define WORKERS 4

struct crowd {
    struct df_queue *q;
    atomic_int inside[KEYS]; /* workers on this key now: never two */
    atomic_int wanted[KEYS]; /* raised before an add */
    atomic_int seen[KEYS];   /* wanted as a pass saw it */
    atomic_int overlaps;
};

static void *crowd_worker(void *arg)
{
    struct crowd *c = arg;
    struct df_queue_key key;
    for (unsigned pass = 0; df_queue_get(c->q, &key); pass++) {
        int k = key.name[1] - 'a';
        if (atomic_fetch_add(&c->inside[k], 1) != 0)
            atomic_fetch_add(&c->overlaps, 1);
        atomic_store(&c->seen[k], atomic_load(&c->wanted[k]));
        atomic_fetch_sub(&c->inside[k], 1);
        df_queue_done(c->q, &key, pass % 7 == 0 ? -1 : 0);
    }
    return NULL;
}

static void *crowd_adder(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < ADDS; i++) {
        char name[3] = {'k', (char)('a' + i % KEYS), 0};
        atomic_fetch_add(&c->wanted[i % KEYS], 1);
        (void)!df_queue_add(c->q, DF_KIND_RUN, name, i % 3 ? 0 : 50, NULL);
    }
    return NULL;
}

static bool all_seen(struct crowd *c)
{
    for (size_t k = 0; k < KEYS; k++)
        if (atomic_load(&c->seen[k]) != atomic_load(&c->wanted[k]))
            return false;
    return true;
}

static void many_threads_lose_no_wake_and_never_share_a_key(void **state)
{
    (void)state;
    static struct crowd c;
    c.q = new_queue();
    pthread_t workers[WORKERS], adders[2];
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, crowd_worker, &c), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&adders[i], NULL, crowd_adder, &c), 0);
    for (size_t i = 0; i < 2; i++)
        (void)pthread_join(adders[i], NULL);
    int64_t give_up = df_mono_ms() + 60000;
    while (!all_seen(&c) && df_mono_ms() < give_up)
        (void)usleep(1000);
    assert_true(all_seen(&c));
    df_queue_close(c.q);
    for (size_t i = 0; i < WORKERS; i++)
        (void)pthread_join(workers[i], NULL);
    assert_int_equal(c.overlaps, 0);
    df_queue_free(c.q);
}

enum { SLEEPERS = 32 };

struct sleepers {
    struct df_queue *q;
    pthread_barrier_t all; /* each worker has got a key that is due now */
    sem_t late;            /* somebody has got the key that is due later */
};

static void *sleep_for_keys(void *arg)
{
    struct sleepers *s = arg;
    struct df_queue_key key;
    while (df_queue_get(s->q, &key)) {
        if (df_streq(key.name, "late"))
            (void)sem_post(&s->late);
        else
            (void)pthread_barrier_wait(&s->all);
        df_queue_done(s->q, &key, 0);
    }
    return NULL;
}

static long switches(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

static void a_key_that_is_due_wakes_one_worker_and_not_all(void **state)
{
    (void)state;
    struct sleepers s = {.q = new_queue()};
    pthread_t workers[SLEEPERS];
    assert_int_equal(pthread_barrier_init(&s.all, NULL, SLEEPERS + 1), 0);
    assert_int_equal(sem_init(&s.late, 0, 0), 0);
    for (size_t i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, sleep_for_keys, &s), 0);
    add(s.q, "late", 500000);
    for (int i = 0; i < SLEEPERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "now-%d", i);
        add(s.q, name, 0);
    }
    (void)pthread_barrier_wait(&s.all);
    (void)usleep(200000); /* all sleep again */
    long before = switches();
    while (sem_wait(&s.late) < 0)
        continue;
    (void)usleep(50000);
    assert_true(switches() - before < SLEEPERS / 2);
    df_queue_close(s.q);
    for (size_t i = 0; i < SLEEPERS; i++)
        (void)pthread_join(workers[i], NULL);
    (void)pthread_barrier_destroy(&s.all);
    (void)sem_destroy(&s.late);
    df_queue_free(s.q);
}

struct takers {
    struct df_queue *q;
    sem_t now, soon;
};

static void *take_keys(void *arg)
{
    struct takers *t = arg;
    struct df_queue_key key;
    while (df_queue_get(t->q, &key)) {
        df_queue_done(t->q, &key, 0);
        (void)sem_post(strcmp(key.name, "now") == 0 ? &t->now : &t->soon);
    }
    return NULL;
}

static void await(sem_t *told)
{
    while (sem_wait(told) < 0)
        continue;
}

/* The timekeeper sleeps until the far key is due, and is not woken for the one that is due now. */
static void nobody_sleeps_over_a_key_that_came_below_one_that_is_due(void **state)
{
    (void)state;
    struct takers t = {.q = new_queue()};
    pthread_t workers[3];
    assert_int_equal(sem_init(&t.now, 0, 0), 0);
    assert_int_equal(sem_init(&t.soon, 0, 0), 0);
    add(t.q, "far", INT64_C(3600) * 1000000);
    for (size_t i = 0; i < DF_ARRAY_SIZE(workers); i++)
        assert_int_equal(pthread_create(&workers[i], NULL, take_keys, &t), 0);
    for (int i = 0; i < 2000; i++) {
        add(t.q, "now", 0);
        add(t.q, "soon", 200);
        await(&t.now);
        await(&t.soon);
    }
    df_queue_close(t.q);
    for (size_t i = 0; i < DF_ARRAY_SIZE(workers); i++)
        (void)pthread_join(workers[i], NULL);
    (void)sem_destroy(&t.now);
    (void)sem_destroy(&t.soon);
    df_queue_free(t.q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_out_in_the_order_they_went_in),
        cmocka_unit_test(a_key_added_many_times_comes_out_once),
        cmocka_unit_test(the_same_name_of_another_kind_is_another_key),
        cmocka_unit_test(a_key_that_is_worked_on_is_not_given_out_twice_but_once_more_afterwards),
        cmocka_unit_test(a_delayed_key_waits_and_an_earlier_time_wins),
        cmocka_unit_test(a_delay_asked_for_while_working_counts_after_done),
        cmocka_unit_test(a_failure_comes_back_by_itself_and_success_forgets_it),
        cmocka_unit_test(what_a_worker_changed_itself_counts_unless_it_pauses),
        cmocka_unit_test(what_others_changed_meanwhile_counts_also_for_a_pass_that_pauses),
        cmocka_unit_test(a_queue_is_idle_when_nothing_is_due_and_nobody_works),
        cmocka_unit_test(thousands_of_keys_come_out_by_their_due_times),
        cmocka_unit_test(closing_sends_sleeping_workers_home),
        cmocka_unit_test(many_threads_lose_no_wake_and_never_share_a_key),
        cmocka_unit_test(a_key_that_is_due_wakes_one_worker_and_not_all),
        cmocka_unit_test(nobody_sleeps_over_a_key_that_came_below_one_that_is_due),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
