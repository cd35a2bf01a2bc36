/*
 * workflow_world.h - control_world.h for tests of workflows: its engine takes them, too, and there
 * may be a second engine. Include behind cmocka.h.
 */
#ifndef DF_TEST_WORKFLOW_WORLD_H
#define DF_TEST_WORKFLOW_WORLD_H

#include "spawner/control/loop.h"
#include "spawner/model/labels.h"
#include "tests/unit/control_world.h"

#define APP "default/deployment/app"

static const struct df_engine_ops both_ops = {
    .close = fake_close, .runner = &fake_runner, .workflow = &fake_workflow};

static struct fake_engine other; /* takes workflows alone */

static inline void open_other(struct world *w)
{
    static const struct df_engine_ops ops = {.close = fake_close, .workflow = &fake_workflow};
    other = (struct fake_engine){.s = &w->s, .kind = {.name = "other"}};
    other.engine = (struct df_engine){.ops = &ops, .kind = &other.kind};
    (void)pthread_mutex_init(&other.lock, NULL);
    (void)pthread_cond_init(&other.changed, NULL);
    assert_int_equal(df_engine_register(&w->s.engines, &other.engine, NULL), 0);
}

static inline int setup(void **state)
{
    struct world *w;
    if (world_setup(state) < 0)
        return -1;
    w = *state;
    w->engine.engine.ops = &both_ops;
    return 0;
}

static inline void start(struct world *w)
{
    struct df_err err = {0};
    if (df_control_start(w->s.control, &err) < 0)
        fail_msg("%s", err.message);
}

static inline int try_ask(struct world *w, const char *name, const char *engine, const char *target,
                          struct df_err *err)
{
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'%s'},'spec':{'action':'workflow','engine':'%s',"
                "'targetResource':'%s','workflow':{'executionBundle':'image'}}}",
                name, engine, target);
    DF_JSON cJSON *doc = json(text);
    return df_request_create_workflow(
        &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "tester"}, NULL, err);
}

static inline void ask_of(struct world *w, const char *engine, const char *name, const char *target)
{
    struct df_err err = {0};
    if (try_ask(w, name, engine, target, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void ask(struct world *w, const char *name, const char *target)
{
    ask_of(w, "local", name, target);
}

static inline void cancel(struct world *w, const char *name)
{
    assert_int_equal(df_request_cancel_workflow(&w->s, name, "tester", NULL, NULL, NULL), 0);
}

static inline void await_text(struct world *w, const char *name, const char *path, const char *text)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *found = value_of(w, DF_KIND_TASK_ACTION, name, path);
        if (strstr(found, text))
            return;
        wait_for_change(w, mark);
    }
}

static inline void await_reason(struct world *w, const char *name, const char *reason)
{
    await_value(w, DF_KIND_TASK_ACTION, name, "status.reason", reason);
}

static inline void await_settled(struct world *w, const char *name)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *labels = value_of(w, DF_KIND_TASK_ACTION, name, "metadata.labels");
        if (!strstr(labels, "dayfly.dev/unfinished"))
            return;
        wait_for_change(w, mark);
    }
}

static inline struct fake_step entry(struct world *w, const char *name)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step copy = *fake_find(&w->engine, name);
    (void)pthread_mutex_unlock(&w->engine.lock);
    return copy;
}

static inline void begin_workflow(struct world *w, const char *name)
{
    start(w);
    ask(w, name, APP);
    (void)await_start(w, name);
}

static inline int creates_of_other(const char *name)
{
    (void)pthread_mutex_lock(&other.lock);
    int n = fake_find(&other, name)->creates;
    (void)pthread_mutex_unlock(&other.lock);
    return n;
}

static inline void await_started_by_other(struct world *w, const char *name)
{
    await_value(w, DF_KIND_TASK_ACTION, name, "status.engineRef.name", name);
    assert_int_equal(creates_of_other(name), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)

#endif
