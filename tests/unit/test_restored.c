/* Runs, steps and workflows that were under way in the backup of an operator. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/control/loop.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/labels.h"

#include "tests/unit/control_loop.h"
#include "tests/unit/database.h"

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

static void a_run_is_canceled_and_its_step_does_not_begin(void **state)
{
    struct world *w = *state;
    restore_net(w);
    start(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    await_settled(w);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
}

/* As after a backup that copied one object after the other. */
static void a_step_without_its_run_does_not_begin(void **state)
{
    struct world *w = *state;
    restore_net(w);
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_RUN, "net-1", NULL, NULL), 0);
    start(w);
    await_settled(w);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
}

/* ---- what cannot be canceled ---- */

/* The run net-1 and its plan are at the limit of a document: each write that makes them larger is
 * refused. */
static void make_large(struct world *w)
{
    DF_FREE char *sql = df_strf("UPDATE documents SET body = json_set(body, "
                                "'$.metadata.annotations', json_object('note', "
                                "printf('%%.*c', %zu - length(body) - 60, 'x'))) "
                                "WHERE name IN ('net-1', '" PLAN "')",
                                (size_t)DF_LIMIT_DOCUMENT);
    execute(w->dir, sql);
}

/* Another run gets its turn meanwhile; with one slot, it waits for nobody. */
static void start_with_refusals(struct world *w)
{
    restore_net(w);
    make_large(w);
    w->config.limit_steps = 1;
    start(w);
    make_executor(w, "dns", "");
    run(w, "dns", AUTO);
    play_plan(w, "dns-1", "dns-1-plan");
    play_apply(w, "dns-1-apply");
    await_value(w, DF_KIND_RUN, "dns-1", "status.phase", "Succeeded");
}

static void what_cannot_be_canceled_is_held_and_all_others_go_on(void **state)
{
    struct world *w = *state;
    start_with_refusals(w);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
    assert_value(w, DF_KIND_RUN, "net-1", "spec.cancel", "");
}

static void what_is_held_is_canceled_when_nobody_refuses_it_any_more(void **state)
{
    struct world *w = *state;
    start_with_refusals(w);
    execute(w->dir, "UPDATE documents SET body = json_remove(body, '$.metadata.annotations')");
    df_queue_wake(w->s.control->queue, DF_KIND_RUN, "net-1");
    df_queue_wake(w->s.control->queue, DF_KIND_TASK_ACTION, PLAN);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Canceled");
    await_settled(w);
    assert_int_equal(fake_look(w, PLAN).creates, 0);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_canceled_and_its_step_does_not_begin),
        TEST(a_step_without_its_run_does_not_begin),
        TEST(what_cannot_be_canceled_is_held_and_all_others_go_on),
        TEST(what_is_held_is_canceled_when_nobody_refuses_it_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
