/*
 * tofu_steps.c - the hooks for steps of runs. Their runner (runner_steps.c) may die and leave a
 * log, a state and a lock behind. Read the table of hooks at the end of the file first, then
 * recover(): its order protects the state.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/standby/standby_pool.h"
#include "spawner/control/steps/shared_pod.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/recovery.h"
#include "spawner/steps/standby.h"

/* ---- begin ---- */

/* The step is offered to a runner that waits, or such an offer is over. */
static int tofu_set_begun(cJSON *task, struct df_task_pass *p, struct df_err *err)
{
    if (p->runner)
        return df_json_set(df_json_object_at(task, "status"), "engineRef",
                           cJSON_Duplicate(p->runner, true), err);
    df_shared_pod_leave(task);
    return df_runner_set_begun(task, p, err);
}

/* Slot, `created` and the reference are one write. Only then the runner is told. */
static int offer(struct df_task_pass *p, struct df_err *err)
{
    const char *id = df_shared_pod_host_of(p->runner);
    bool has_slot = false, is_of_plan = df_shared_pod_is_of_plan(p->runner);
    int result = df_task_take_slot(p, &has_slot, err);
    if (result < 0 || !has_slot) {
        df_standby_give_back(p, result < 0 ? err : NULL);
        return result;
    }
    df_debug("step %s is offered to the runner %s", p->step.name, id);
    df_standby_forget(p->c,
                      df_json_str(p->task, "spec.runRef.name")); /* nobody makes another one */
    df_standby_offer(p->c->s->standby, id, p->step.uid);
    return is_of_plan ? df_shared_pod_lend(p->c, df_json_str(p->runner, "name"), err) : 0;
}

static int tofu_begin(struct df_task_pass *p, struct df_err *err)
{
    if (df_shared_pod_find(p, err) < 0 || (!p->runner && df_standby_find(p, err) < 0))
        return -1;
    if (!p->runner && df_shared_pod_is_of_plan(df_json_at(p->task, "status.engineRef")))
        df_info("step %s gets a pod of its own: that of its plan did not take it", p->step.name);
    int result = p->runner ? offer(p, err) : df_runner_begin(p, err);
    df_shared_pod_wake_host(p);
    if (result == 0)
        df_standby_leave(p);
    return result;
}

/* ---- ends ---- */

static int tofu_end(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    /* A process that could not be ended may create more resources, but no later pass would look for
     * them: the list is written now. */
    if (p->observed.phase != DF_ENGINE_ENDED && df_runner_note_unrecorded(p, err) < 0)
        return -1;
    return df_runner_end(p, v, err);
}

/* ---- after the end ---- */

/* Releases the state lock that a dead step may have left. */
static int release_lock(struct df_task_pass *p, struct df_err *err)
{
    const char *executor = df_json_str(p->task, "spec.executorRef.uid");
    bool released = false;
    if (df_state_release_dead(p->c->s->states, executor, p->step.uid, &released, err) < 0)
        return -1;
    if (released)
        df_info("the state lock of step %s is released: every process of the step is dead",
                p->step.name);
    return 0;
}

/* A step that writes no state has none to keep: what lies there is no work of the tool. */
static int recover_state(struct df_task_pass *p, struct df_err *err)
{
    if (!df_recipe_step_of(p->task)->writes)
        return 0;
    return df_recover_state(p->c->s, p->engine, &p->step,
                            df_json_str(p->task, "spec.executorRef.uid"), err);
}

/* Whoever waits for the end of a step that writes nothing need not wait for the storage. The passes
 * of the final step try again what could not be done now. */
static int later(const struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_RETRY || df_recipe_step_of(p->task)->writes || df_task_is_final(p->task))
        return df_err_pass(err, why);
    df_warn("what step %s left is stored later: %s", p->step.name, why->message);
    return 0;
}

/* A call that the storage does not answer takes minutes: it is not asked while it is known to
 * fail. */
static int check_storage(const struct df_task_pass *p, struct df_err *err)
{
    return df_recipe_step_of(p->task)->writes ? 0 : df_blob_check(p->c->s->blobs, err);
}

/* Runs before the step is final, so that a client that waits for the end finds the complete log,
 * the saved state and a released lock. */
static int recover(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (!df_task_has_runner(p->task))
        return 0;
    if (check_storage(p, &why) < 0)
        return later(p, &why, err);
    if (df_task_is_final(p->task))
        return release_lock(p, err);
    df_recover_streams(p->c->s, p->engine, &p->step);
    if (recover_state(p, &why) < 0) {
        if (why.cls == DF_ERR_RETRY || why.cls == DF_ERR_SYSTEM)
            return df_err_pass(err, &why); /* a later run must not start before it is kept */
        df_warn("the state that step %s left is not kept: %s", p->step.name, why.message);
    }
    if (df_runner_note_unrecorded(p, err) < 0)
        return -1;
    return release_lock(p, &why) < 0 ? later(p, &why, err) : 0;
}

static int free_slot(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    return df_label_has(task, DF_LABEL_LIVE) ? df_slot_clear(task, err) : 1;
}

/* No process of the step is left, and what it left behind waits for the storage. Neither its run
 * nor other steps wait for that, unless it may have changed the state: then the next run must find
 * it. */
static int try_later(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    if (why->cls == DF_ERR_RETRY && df_task_is_final(p->task) &&
        !df_recipe_step_of(p->task)->writes) {
        if (df_task_pass_modify(p, free_slot, NULL, err) < 0)
            return -1;
        df_slots_wake(&p->c->slots);
    }
    return df_err_pass(err, why);
}

static int tofu_clean(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (df_task_has_runner(p->task) &&
        (df_recover_rest(p->c->s, p->engine, &p->step, &why) < 0 || recover_state(p, &why) < 0))
        return try_later(p, &why, err);
    df_step_drop_errored_state(p->c->s, p->task); /* its result may have come from the engine */
    if (p->ops->cleanup(p->engine, &p->step, err) < 0)
        return -1;
    return df_task_pass_finalize(p, err);
}

/* How soon it is tried again, if the end of the run does not wake it (runs.c). */
#define RUN_AGAIN_US INT64_C(60000000)

/* The document stays until its run is final, because the run reads the step's end and its plan from
 * it. */
static int tofu_may_remove(struct df_task_pass *p, bool *ret, struct df_err *err)
{
    DF_SHARED const cJSON *run = NULL;
    const char *name = df_json_str(p->task, "spec.runRef.name");
    if (df_store_look_for(p->c->s->store, DF_KIND_RUN, name, &run, err) < 0)
        return -1;
    *ret = !run || df_run_is_final(run);
    if (!*ret) {
        p->wake_us = p->now_us + RUN_AGAIN_US;
        p->pauses = true;
    }
    return 0;
}

/* ---- observations ---- */

/* The engine reports a shared pod under the name of the plan, whose pass wakes the apply. This look
 * is for an apply whose plan was deleted by force. */
#define SHARED_AGAIN_US INT64_C(15000000)

static int tofu_report(struct df_task_pass *p, struct df_err *err)
{
    if (df_shared_pod_host(p->task))
        df_task_pass_wake(p, p->now_us + SHARED_AGAIN_US);
    return df_task_pass_report_waiting(p, err);
}

static int set_disruption(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
    if (!df_task_is_disruption(task, &p->observed))
        return 1;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *kept = status ? df_json_object_at(status, "disruption") : NULL;
    if (!kept)
        return df_fail_oom(err);
    if (df_json_set_str(kept, "reason", p->observed.reason, err) < 0)
        return -1;
    return df_json_set_str(kept, "message", p->observed.cause, err);
}

static int tofu_after_observe(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    df_standby_observe(p);
    if (df_shared_pod_observe(p, err) < 0)
        return -1;
    if (p->observed.phase == DF_ENGINE_ENDED && recover(p, &why) < 0)
        return try_later(p, &why, err);
    if (!df_task_is_disruption(p->task, &p->observed))
        return 0;
    df_warn("step %s is being ended: %s", p->step.name, p->observed.cause);
    return df_task_pass_modify(p, set_disruption, p, err);
}

const struct df_task_hooks df_tofu_hooks = {
    .starts_unobserved = true,
    .after_observe = tofu_after_observe,
    .set_begun = tofu_set_begun,
    .begin = tofu_begin,
    .report = tofu_report,
    .end = tofu_end,
    .collect = df_runner_collect,
    .clean = tofu_clean,
    .may_remove = tofu_may_remove,
};
