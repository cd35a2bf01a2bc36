/* What a look of the pool of standby runners costs, and what it counts. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/standby_world.h"

/* ---- names that are compared ---- */

static atomic_size_t compared;

/* Instead of that of libc, for the whole program. */
int strcmp(const char *a, const char *b)
{
    (void)atomic_fetch_add(&compared, 1);
    while (*a && *a == *b)
        a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}

/* ---- a pool without a thread ---- */

/* Neither waits nor makes anything: there is no step, and nothing is due. */
static struct df_standby_pool *pool_of(struct world *w)
{
    struct df_standby_pool *pool = calloc(1, sizeof(*pool));
    assert_non_null(pool);
    pool->c = w->s.control;
    pool->engine = &w->engine.engine;
    pool->runners = w->s.standby;
    pool->stopped = true;
    pool->swept_ms = df_mono_ms();
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->changed, NULL);
    return pool;
}

static struct df_standby_form form_for(int number)
{
    struct df_standby_form form = {.digest = "d1", .seconds = 100};
    (void)snprintf(form.run, sizeof(form.run), "r-%d", number);
    return form;
}

/* Its person is asked for an hour yet. */
static void add_demand(struct df_standby_pool *pool, int number)
{
    struct df_demand *d = calloc(1, sizeof(*d));
    assert_non_null(d);
    d->form = form_for(number);
    (void)snprintf(d->run, sizeof(d->run), "%s", d->form.run);
    d->task = json("{'metadata':{'name':'next','namespace':'default'},'spec':{}}");
    d->until_ms = df_mono_ms() + 3600000;
    assert_int_equal(df_demand_add(pool, d, NULL), 0);
}

static void add_runner(struct world *w, int number)
{
    DF_FREE char *id = df_strf("standby-%d", number);
    DF_JSON cJSON *ref = ref_of(id, id);
    const struct df_standby_form form = form_for(number);
    assert_int_equal(df_standby_add(w->s.standby, ref, &form, 0, NULL), 0);
}

static void look(struct df_standby_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    df_standby_look(pool);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* ---- tests ---- */

/* Each second run has a runner, and there is room for no other one: the look asks all of them. */
static size_t cost_of_look(void **state, int runs)
{
    struct world *w = *state;
    w->config.limit_steps = runs / 2;
    struct df_standby_pool *pool = pool_of(w);
    for (int i = 0; i < runs; i++) {
        add_demand(pool, i);
        if (i % 2)
            add_runner(w, i);
    }
    size_t before = atomic_load(&compared);
    look(pool);
    size_t cost = atomic_load(&compared) - before;
    assert_int_equal(jobs_made(w), 0);
    assert_int_equal(pool->known.ahead, runs / 2);
    assert_int_equal(pool->known.sure, 0);
    df_standby_pool_free(pool);
    new_world(state);
    return cost;
}

/* Sorting costs a little more than four times as much, each pair sixteen times. */
static void a_look_at_four_times_as_many_runs_compares_few_more_names_for_each(void **state)
{
    size_t few = cost_of_look(state, 64), many = cost_of_look(state, 256);
    if (many > 6 * few)
        fail_msg("%zu names are compared for 64 runs, %zu for 256", few, many);
}

static void runners_and_demands_are_counted_by_their_forms(void **state)
{
    struct world *w = *state;
    struct df_standby_pool *pool = pool_of(w);
    add_demand(pool, 1);
    add_demand(pool, 2);
    add_runner(w, 1);
    add_runner(w, 3);
    look(pool);
    assert_int_equal(df_runners_form(&pool->known, "d1", "r-1").idle, 1);
    assert_int_equal(df_runners_form(&pool->known, "d1", "r-2").idle, 0);
    assert_int_equal(df_runners_form(&pool->known, "d2", "r-1").idle, 0);
    assert_int_equal(pool->known.ahead, 2);
    assert_int_equal(pool->known.sure, 1); /* nobody is asked for the run r-3 */
    assert_string_equal(df_runners_demand_of(&pool->known, &pool->known.runners[0])->run, "r-1");
    assert_null(df_runners_demand_of(&pool->known, &pool->known.runners[1]));
    df_standby_pool_free(pool);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_look_at_four_times_as_many_runs_compares_few_more_names_for_each),
        TEST(runners_and_demands_are_counted_by_their_forms),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
