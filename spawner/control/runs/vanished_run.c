#include "spawner/control/runs/vanished_run.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/lock_queue.h"
#include "spawner/requests/purge.h"

#define WHY "its run was deleted"
/* How soon a step that is not cleaned up yet is looked at again. */
#define AGAIN_US INT64_C(5000000)

static int list_steps(struct df_control *c, const char *run, cJSON **ret, struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), DF_LABEL_RUN "=%s", run);
    const struct df_store_list_options o = {.label = label};
    return df_store_list(c->s->store, DF_KIND_TASK_ACTION, &o, ret, NULL, err);
}

/* ---- the steps ---- */

/* A df_store_change. */
static int set_cancel(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    if (df_task_is_canceled(task) || df_task_is_final(task))
        return 1;
    cJSON *cancel = df_json_object_at(df_json_object_at(task, "spec"), "cancel");
    if (!cancel)
        return df_fail_oom(err);
    return df_json_add_str(cancel, "reason", WHY, err) < 0
               ? -1
               : df_json_add_time(cancel, "at", df_real_us(), err);
}

/* A step that is over and holds nothing is removed; any other is canceled and ends by itself. */
static int end_step(struct df_control *c, const cJSON *step, struct df_err *err)
{
    struct df_err why = {0};
    bool is_over = df_task_is_final(step) && !df_label_has(step, DF_LABEL_UNFINISHED);
    int result =
        is_over ? df_purge_step(c->s, step, NULL, &why)
                : df_store_modify(c->s->store, DF_KIND_TASK_ACTION,
                                  df_json_str(step, "metadata.name"), set_cancel, NULL, NULL, &why);
    return result == 0 || why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

/* The executor of a run that has no step is known by the run's usual name, <executor>-<number>. */
static void wake_executor(struct df_control *c, const char *run, const cJSON *steps)
{
    const char *of_step = df_json_str(steps->child, "spec.executorRef.name");
    const char *dash = strrchr(run, '-');
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", dash ? (int)(dash - run) : 0, run);
    if (of_step || name[0])
        df_queue_wake(c->queue, DF_KIND_EXECUTOR, of_step ? of_step : name);
}

int df_vanished_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                    struct df_err *err)
{
    DF_JSON cJSON *steps = NULL;
    const cJSON *step;
    if (list_steps(c, name, &steps, err) < 0)
        return -1;
    cJSON_ArrayForEach (step, steps) {
        if (end_step(c, step, err) < 0)
            return -1;
        *ret_wake_us = df_real_us() + AGAIN_US;
    }
    wake_executor(c, name, steps);
    return 0;
}

/* ---- the executor ---- */

/* *ret: the name of the executor's active run if that run does not exist; else NULL. Borrowed. */
static int find_vanished(struct df_control *c, const cJSON *executor, const char **ret,
                         struct df_err *err)
{
    const char *active = df_json_str(executor, "status.activeRun");
    DF_SHARED const cJSON *run = NULL;
    *ret = NULL;
    if (active && df_store_look_for(c->s->store, DF_KIND_RUN, active, &run, err) < 0)
        return -1;
    *ret = run ? NULL : active;
    return 0;
}

int df_vanished_blocks(struct df_control *c, const cJSON *executor, bool *ret, struct df_err *err)
{
    const char *run = NULL;
    DF_JSON cJSON *steps = NULL;
    *ret = false;
    if (find_vanished(c, executor, &run, err) < 0)
        return -1;
    if (!run)
        return 0;
    if (list_steps(c, run, &steps, err) < 0)
        return -1;
    *ret = steps->child != NULL;
    return 0;
}

/* A df_store_change. arg: the executor as this pass has read it. */
static int set_released(cJSON *executor, void *arg, struct df_err *err)
{
    const cJSON *const *seen = arg;
    return df_streq(df_json_str(executor, "status.activeRun"),
                    df_json_str(*seen, "status.activeRun"))
               ? df_executor_lose_run(executor, df_real_us(), err)
               : 1;
}

static int release(struct df_control *c, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    char next[64];
    if (df_store_modify(c->s->store, DF_KIND_EXECUTOR, name, set_released, (void *)&executor, NULL,
                        err) < 0 ||
        df_lock_queue_first(c->s->store, DF_KIND_RUN, name, next, err) < 0)
        return -1;
    if (next[0])
        df_queue_wake(c->queue, DF_KIND_RUN, next);
    return 0;
}

int df_vanished_settle(struct df_control *c, const cJSON *executor, struct df_err *err)
{
    const char *run = NULL;
    bool waits = false;
    if (find_vanished(c, executor, &run, err) < 0)
        return -1;
    if (!run)
        return 0;
    if (df_vanished_blocks(c, executor, &waits, err) < 0)
        return -1;
    if (waits) {
        df_queue_wake(c->queue, DF_KIND_RUN, run);
        return 0;
    }
    df_warn("executor %s: its run %s was deleted by force before it had ended",
            df_json_str(executor, "metadata.name"), run);
    return release(c, executor, err);
}
