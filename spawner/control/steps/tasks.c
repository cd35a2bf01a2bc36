/*
 * tasks.c - one pass over one TaskAction: observe the engine, ask df_task_next(), do that one
 * thing. Read df_reconcile_task() at the end, then act(); task_pass.h says where tofu steps and
 * workflows differ.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/control/documents/applied.h"
#include "spawner/control/documents/deleted.h"
#include "spawner/control/documents/restored.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/task_kinds.h"
#include "spawner/model/workflow.h"
#include "spawner/steps/engine_step.h"
#include "spawner/upstream.h"

static void free_pass(struct df_task_pass *p)
{
    df_shared_drop(p->task);
    cJSON_Delete(p->runner);
}

/* ---- act ---- */

/* A step that is not finalized yet is finalized first; the next pass removes the document. */
static int remove_document(struct df_task_pass *p, struct df_err *err)
{
    bool may = true;
    if (df_label_has(p->task, DF_LABEL_UNFINISHED))
        return df_task_pass_finalize(p, err);
    if (p->hooks->may_remove && p->hooks->may_remove(p, &may, err) < 0)
        return -1;
    return may ? df_deleted_remove(p->c, p->task, err) : 0;
}

static int wait(struct df_task_pass *p, struct df_err *err)
{
    if (!df_task_is_final(p->task))
        return p->hooks->report(p, err);
    if (df_task_pass_is_alive(p) || p->observed.serves_other_step)
        return 0;
    if (p->hooks->release && p->hooks->release(p, err) < 0)
        return -1;
    return df_task_pass_finalize(p, err);
}

static int act(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    if (v->next != DF_TASK_CREATE)
        df_slots_dequeue(&p->c->slots, p->step.name);
    if ((v->next == DF_TASK_WAIT || v->next == DF_TASK_CANCEL) && v->wake_us)
        df_task_pass_wake(p, v->wake_us);
    switch (v->next) {
    case DF_TASK_CREATE:
        return df_task_pass_start(p, err);
    case DF_TASK_COLLECT:
        return p->hooks->collect(p, err);
    case DF_TASK_CANCEL:
        return p->ops->cancel(p->engine, &p->step, err);
    case DF_TASK_CLEAN:
        return p->hooks->clean(p, err);
    case DF_TASK_REMOVE:
        return remove_document(p, err);
    case DF_TASK_FAIL:
    case DF_TASK_SUCCEED:
        return p->hooks->end(p, v, err);
    case DF_TASK_WAIT:
    default:
        return wait(p, err);
    }
}

/* ---- the pass ---- */

#define UNOBSERVED_REPORT_AFTER_US INT64_C(5000000)

/* Nobody can say what exists of the step. is_alive: what it has counts as alive then. */
static struct df_task_verdict decide_unobserved(struct df_task_pass *p, bool is_alive,
                                                const struct df_err *why)
{
    p->observed =
        (struct df_engine_observation){.phase = is_alive ? DF_ENGINE_RUNNING : DF_ENGINE_ABSENT,
                                       .exit_code = -1,
                                       .is_unknown = true,
                                       .reachable_since_us = p->c->reachable_since_us};
    df_copy(p->observed.cause, sizeof(p->observed.cause), why->message);
    return df_task_next(p->task, &p->observed, p->now_us);
}

/* Who cancels a step is told at once what that waits for. Otherwise not in the first seconds of a
 * step or after a start of the spawner: a restart would write every document. */
static int report_unobserved(struct df_task_pass *p, enum df_task_next next,
                             const struct df_err *why, struct df_err *err)
{
    bool is_long = df_task_age_us(p->task, p->now_us) >= UNOBSERVED_REPORT_AFTER_US &&
                   p->now_us - p->c->reachable_since_us >= UNOBSERVED_REPORT_AFTER_US;
    if (next == DF_TASK_CANCEL)
        (void)snprintf(p->observed.cause, sizeof(p->observed.cause),
                       "canceled; whether it has ended is not known: %.800s", why->message);
    return is_long || next == DF_TASK_CANCEL ? df_task_pass_report_waiting(p, err) : 0;
}

/* The engine could not say what exists of the step, so do only what is safe without that: a first
 * start (the object's unique name makes a second one harmless), a cancel, or a failure that is due.
 * Assume that a step that was created is alive: it keeps what it holds. */
static int act_unobserved(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    struct df_task_verdict v =
        decide_unobserved(p, p->step.was_created || p->step.was_claimed, why);
    bool starts = v.next == DF_TASK_CREATE && p->hooks->starts_unobserved;
    if (df_task_is_final(p->task))
        return df_err_pass(err, why);
    if (!starts && v.next != DF_TASK_FAIL && report_unobserved(p, v.next, why, err) < 0)
        return -1;
    if (!starts && v.next != DF_TASK_FAIL && v.next != DF_TASK_CANCEL)
        return df_err_pass(err, why);
    if (act(p, &v, err) < 0)
        return -1;
    if (!p->pauses)
        df_task_pass_wake(p, df_task_retry_at(p->task, p->now_us, 0));
    return 0;
}

/* The engine that was asked to start the step is not configured now. Only that engine knows whether
 * the runner lives, so the step keeps what it holds until the engine is back or a deadline is
 * over. */
static int act_without_engine(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    struct df_task_verdict v = decide_unobserved(p, true, why);
    if (v.next == DF_TASK_FAIL)
        return act(p, &v, err);
    df_warn("step %s is left as it is: %s; add the engine that started it to `engines`",
            p->step.name, why->message);
    p->wake_us = v.wake_us;
    return df_task_pass_report_waiting(p, err);
}

static int one_pass(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    if (p->ops->status(p->engine, &p->step, &p->observed, &why) < 0)
        return act_unobserved(p, &why, err);
    p->observed.reachable_since_us = p->c->reachable_since_us;
    p->observed.max_system_failures = p->c->s->config->max_system_failures;
    if (p->hooks->after_observe && p->hooks->after_observe(p, err) < 0)
        return -1;
    struct df_task_verdict v = df_task_next(p->task, &p->observed, p->now_us);
    return act(p, &v, err);
}

static int find_engine(struct df_task_pass *p, struct df_err *err)
{
    const struct df_engine_registry *engines = &p->c->s->engines;
    const char *name = df_json_str(p->task, "spec.engine");
    if (df_engine_get_for(engines, name, &p->step, &p->engine, err) < 0)
        return -1;
    p->ops = df_engine_ops_of(p->engine, &p->step);
    return 0;
}

/* Wakes the run of the step, once for each version of the step. */
static void tell_run(struct df_control *c, const cJSON *task)
{
    const char *run = df_json_str(task, "spec.runRef.name");
    if (run && df_woken_is_new(&c->told, task))
        df_queue_wake(c->queue, DF_KIND_RUN, run);
}

/* A pass that pauses is followed by none that would tell the run of what this one wrote. */
static int tell_before_pause(struct df_control *c, const char *name, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_for(c->s->store, DF_KIND_TASK_ACTION, name, &task, err) < 0)
        return -1;
    if (task)
        tell_run(c, task);
    return 0;
}

static const struct df_task_hooks *hooks_of(const struct df_task_pass *p)
{
    if (df_task_kind(p->task)->member)
        return p->c->s->upstream->hooks;
    return df_task_is_workflow(p->task) ? &df_workflow_hooks : &df_tofu_hooks;
}

static int reconcile_accepted(struct df_task_pass *p, struct df_err *err)
{
    struct df_control *c = p->c;
    struct df_err why = {0};
    p->hooks = hooks_of(p);
    tell_run(c, p->task);
    if (!df_label_has(p->task, DF_LABEL_UNFINISHED) && !df_doc_is_deleted(p->task))
        return 0;
    p->now_us = df_real_us();
    df_engine_step_of(c->s, p->task, &p->step);
    if (find_engine(p, &why) == 0)
        return one_pass(p, err);
    /* What an engine keeps that is no longer configured is not reached any more. */
    if (df_task_is_final(p->task))
        return df_doc_is_deleted(p->task) ? remove_document(p, err) : df_task_pass_finalize(p, err);
    return df_label_has(p->task, DF_LABEL_LIVE)
               ? act_without_engine(p, &why, err)
               : df_task_pass_fail(p, DF_FAULT_USER, why.reason, why.message, err);
}

struct lost {
    struct df_control *c;
    const char *task;
};

/* A df_store_visit. */
static int wake_if_owner(const cJSON *run, void *arg, struct df_err *err)
{
    const struct lost *lost = arg;
    const cJSON *step;
    (void)err;
    cJSON_ArrayForEach (step, df_json_at(run, "status.steps")) {
        if (df_streq(df_json_str(step, "taskAction"), lost->task))
            df_queue_wake(lost->c->queue, DF_KIND_RUN, df_json_str(run, "metadata.name"));
    }
    return 0;
}

/* A TaskAction that does not exist: if it was deleted by force, its run must end. A name that was
 * shortened does not contain that of the run; the run is searched for then. */
static int wake_owner(struct df_control *c, const char *name, struct df_err *err)
{
    struct lost lost = {c, name};
    const char *dash = strrchr(name, '-');
    char run[64];
    (void)snprintf(run, sizeof(run), "%.*s", dash ? (int)(dash - name) : 0, name);
    if (strlen(name) == DF_LIMIT_NAME)
        return df_store_each(c->s->store, DF_KIND_RUN, DF_LABEL_UNFINISHED "=true", wake_if_owner,
                             &lost, err);
    if (run[0])
        df_queue_wake(c->queue, DF_KIND_RUN, run);
    return 0;
}

/* The step is final or gone: nothing in memory is for it any more. */
static void forget(struct df_control *c, const char *name)
{
    df_slots_dequeue(&c->slots, name);
    df_memory_forget(&c->s->memory, DF_KIND_TASK_ACTION, name);
}

/* The pass decides by the reference that is in memory, too. *ret_due_us: when it is to be written;
 * 0: there is none, or it is written now. */
static int take_ref(struct df_task_pass *p, int64_t *ret_due_us, struct df_err *err)
{
    if (df_task_show_ref(p->c->s, &p->task, ret_due_us, err) < 0)
        return -1;
    if (!*ret_due_us || df_real_us() < *ret_due_us)
        return 0;
    *ret_due_us = 0;
    return df_task_write_ref(p->c->s, df_json_str(p->task, "metadata.name"), err);
}

int df_reconcile_task(struct df_control *c, const char *name, int64_t *ret_wake_us,
                      struct df_err *err)
{
    DF_CLEANUP(free_pass) struct df_task_pass p = {.c = c};
    bool done = false;
    int64_t due_us = 0;
    if (df_store_look_for(c->s->store, DF_KIND_TASK_ACTION, name, &p.task, err) < 0)
        return -1;
    if (!p.task || df_task_is_final(p.task))
        forget(c, name);
    if (!p.task)
        return wake_owner(c, name, err);
    if (df_restored_pass(c, DF_KIND_TASK_ACTION, p.task, &done, err) < 0) {
        df_slots_dequeue(&c->slots, name);
        return -1;
    }
    if (!done && df_applied_task(c, p.task, &done, err) < 0)
        return -1;
    if (done)
        return 0;
    if (take_ref(&p, &due_us, err) < 0 || reconcile_accepted(&p, err) < 0)
        return -1;
    if (due_us)
        df_task_pass_wake(&p, due_us);
    *ret_wake_us = p.wake_us;
    if (!p.pauses)
        return 0;
    return tell_before_pause(c, name, err) < 0 ? -1 : DF_PASS_PAUSE;
}
