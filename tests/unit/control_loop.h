/*
 * control_loop.h - tests of the control loop: each has a world of its own, whose loop it starts.
 * Include behind cmocka.h.
 */
#ifndef DF_TEST_CONTROL_LOOP_H
#define DF_TEST_CONTROL_LOOP_H

#include "tests/unit/control_world.h"

#define ASKING "{'action':'provision'}"
#define AUTO "{'action':'provision','autoApprove':true}"

static void start(struct world *w)
{
    struct df_err err = {0};
    if (df_control_start(w->s.control, &err) < 0)
        fail_msg("%s", err.message);
}

static void run(struct world *w, const char *executor, const char *body)
{
    cJSON_Delete(make_run(w, executor, body));
}

/* Until nothing is unfinished: the engine holds nothing any more. */
static inline void await_settled(struct world *w)
{
    static const enum df_kind kinds[] = {DF_KIND_RUN, DF_KIND_TASK_ACTION};
    for (int left = 1; left;) {
        uint64_t mark = changes_mark(w);
        left = 0;
        for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
            const struct df_store_list_options o = {.label = "dayfly.dev/unfinished=true"};
            DF_JSON cJSON *list = NULL;
            assert_int_equal(df_store_list(w->s.store, kinds[i], &o, &list, NULL, NULL), 0);
            left += cJSON_GetArraySize(list);
        }
        if (left)
            wait_for_change(w, mark);
    }
}

/* The first run of an executor, "net-1". */
static inline void begin(struct world *w, const char *request)
{
    make_executor(w, "net", "");
    start(w);
    run(w, "net", request);
}

/* The same, until its plan waits for approval. */
static inline void begin_planned(struct world *w)
{
    begin(w, ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
}

static inline void play_apply(struct world *w, const char *step)
{
    struct runner r = claim(w, step);
    DF_CLOSE int fd = -1;
    int64_t size;
    struct df_err err = {0};
    if (df_step_get_plan(&w->s, r.uid, r.step_token, &fd, &size, &err) < 0)
        fail_msg("get plan: %s", err.message);
    report(&r, APPLIED);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

#endif
