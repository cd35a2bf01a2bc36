#include "common/base/log.h"
#include "spawner/control/task_pass.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/salvage.h"
#include "spawner/steps/unrecorded.h"

/* ---- ends ---- */

struct ending {
    const struct df_task_pass *pass;
    const cJSON *result;                /* what the runner left; or NULL: */
    struct df_outcome_failure *failure; /* how it failed */
};

/* Unless the runner's own report was faster. */
static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct df_task_pass *p = e->pass;
    if (df_task_is_final(task))
        return 1;
    if (e->result && df_task_was_interrupted(task, e->result))
        return df_outcome_interrupted(task, e->result, p->now_us, err);
    if (e->result)
        return df_outcome_result(task, e->result, p->now_us, err);
    int64_t code = df_json_int(task, "status.interrupted.exitCode", p->seen.exit_code);
    e->failure->exit_code = (int)code;
    if (df_task_count_lost_try(task, &p->seen, p->now_us, err) < 0)
        return -1;
    return df_outcome_fail(task, e->failure, p->now_us, err);
}

static int set_unrecorded(cJSON *task, void *arg, struct df_err *err)
{
    if (df_task_is_final(task) || df_json_at(task, "status.unrecorded"))
        return 1;
    return df_outcome_unrecorded(task, arg, err);
}

/* Written before the end and before the lock is released: a pass that dies in between leaves the
 * lock, or the list. */
static int note_unrecorded(struct df_task_pass *p, struct df_err *err)
{
    if (!df_task_has_runner(p->task) || df_json_at(p->task, "status.unrecorded"))
        return 0;
    DF_JSON cJSON *found = df_unrecorded_find(p->c->s, p->task);
    if (!found)
        return 0;
    df_unrecorded_warn(p->step.name, found);
    return df_task_pass_modify(p, set_unrecorded, found, err);
}

int df_task_pass_fail(struct df_task_pass *p, enum df_fault fault, const char *reason,
                      const char *message, struct df_err *err)
{
    struct df_outcome_failure f = {.fault = fault, .reason = reason, .message = message};
    struct ending e = {.pass = p, .failure = &f};
    /* What could not be ended may make more, but nobody will look again. */
    if (p->seen.phase != DF_ENGINE_ENDED && note_unrecorded(p, err) < 0)
        return -1;
    return df_task_pass_modify(p, set_end, &e, err);
}

/* The runner could not reach us before it had to end. */
int df_task_pass_collect(struct df_task_pass *p, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    struct ending e = {.pass = p};
    if (p->engine->ops->result(p->engine, &p->step, &result, err) < 0)
        return -1;
    e.result = result;
    if (df_task_pass_modify(p, set_end, &e, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        return df_task_pass_fail(p, DF_FAULT_NONE, "RunnerFailed", why.message, err);
    *err = why;
    return -1;
}

/* ---- after the end ---- */

/* Nothing of a step lives any more: the lock that it may have left is nobody's. */
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

static int salvage_state(struct df_task_pass *p, struct df_err *err)
{
    return df_salvage_state(p->c->s, p->engine, &p->step,
                            df_json_str(p->task, "spec.executorRef.uid"), err);
}

/* Before the step is final: who waits for its end finds its log whole, its state kept and its lock
 * free. */
int df_task_pass_after_death(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (!df_task_has_runner(p->task))
        return 0;
    if (df_task_is_final(p->task))
        return release_lock(p, err);
    df_salvage_streams(p->c->s, p->engine, &p->step);
    if (salvage_state(p, &why) < 0) /* tried again until it is done, before anything is removed */
        df_warn("the state that step %s left is not kept yet: %s", p->step.name, why.message);
    return note_unrecorded(p, err) < 0 ? -1 : release_lock(p, err);
}

static int set_settled(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    if (!auth)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(auth, "state");
    if (df_label_set(task, DF_LABEL_UNFINISHED, NULL, err) < 0)
        return -1;
    return df_place_clear(task, err);
}

int df_task_pass_settle(struct df_task_pass *p, struct df_err *err)
{
    if (!df_label_has(p->task, DF_LABEL_UNFINISHED))
        return 0;
    if (df_task_pass_modify(p, set_settled, NULL, err) < 0)
        return -1;
    df_places_wake(p->c);
    return 0;
}

int df_task_pass_clean(struct df_task_pass *p, struct df_err *err)
{
    if (df_task_has_runner(p->task) && salvage_state(p, err) < 0)
        return -1;
    if (p->engine->ops->cleanup(p->engine, &p->step, err) < 0)
        return -1;
    return df_task_pass_settle(p, err);
}
