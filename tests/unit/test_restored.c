/* Runs, steps and workflows that were under way in the backup of an operator. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/labels.h"

#include "tests/unit/control_loop.h"

#define PLAN "net-1-plan"

/* A df_store_change: what the store says of a resource that was made again. */
static int set_restored(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    return df_label_set(doc, DF_LABEL_RESTORED, "true", err);
}

static void restore(struct world *w, enum df_kind kind, const char *name)
{
    struct df_err err = {0};
    if (df_store_modify(w->s.store, kind, name, set_restored, NULL, NULL, &err) < 0)
        fail_msg("%s: %s", name, err.message);
}

/* The run net-1, whose plan has not begun; nobody has looked at either since. */
static void restore_net(struct world *w)
{
    DF_JSON cJSON *task = NULL;
    struct df_err err = {0};
    make_executor(w, "net", "");
    DF_JSON cJSON *run = make_run(w, "net", AUTO);
    if (df_new_task(run, "plan", "plan", &w->config, df_real_us(), &task, &err) < 0 ||
        df_task_create(&w->s, task, NULL, &err) < 0)
        fail_msg("%s", err.message);
    restore(w, DF_KIND_RUN, "net-1");
    restore(w, DF_KIND_TASK_ACTION, PLAN);
}

static int creates_of(struct world *w, const char *step)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    int n = fake_find(&w->engine, step)->creates;
    (void)pthread_mutex_unlock(&w->engine.lock);
    return n;
}

static void a_run_is_canceled_and_its_step_does_not_begin(void **state)
{
    struct world *w = *state;
    restore_net(w);
    start(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    await_settled(w);
    assert_int_equal(creates_of(w, PLAN), 0);
}

/* As after a backup that copied one object after the other. */
static void a_step_without_its_run_does_not_begin(void **state)
{
    struct world *w = *state;
    restore_net(w);
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_RUN, "net-1", NULL, NULL), 0);
    start(w);
    await_settled(w);
    assert_int_equal(creates_of(w, PLAN), 0);
}

int main(void)
{
    (void)alarm(300); /* what is awaited and never comes */
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_canceled_and_its_step_does_not_begin),
        TEST(a_step_without_its_run_does_not_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
