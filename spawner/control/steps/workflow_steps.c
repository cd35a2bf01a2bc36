/*
 * workflow_steps.c - the hooks for workflows. A workflow has no run and no runner; only the engine
 * knows its state. Read the table of hooks at the end of the file first.
 *
 * The service's own actions on a target queue for it in the order of creation, whatever engines
 * they have. The one that has a slot holds the target (slots.h): each starts only after the end of
 * the previous one is stored, so that no action removes an object whose result has not been read.
 * Other schedulers know nothing of the queue: towards them the name of the engine's object is the
 * lock. By that name an action also finds its own object after a crash.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/lock_queue.h"
#include "spawner/control/steps/workflow_log.h"
#include "spawner/control/task_pass.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/outcome.h"

/* How often an action in the queue checks whether it has waited for too long. */
#define QUEUED_AGAIN_US INT64_C(15000000)
/* How soon a Job that is being deleted is observed again. */
#define CLEAN_AGAIN_US INT64_C(1000000)

static bool is_alive(const struct df_task_pass *p)
{
    return p->observed.phase == DF_ENGINE_PENDING || p->observed.phase == DF_ENGINE_RUNNING;
}

/* ---- observations ---- */

/* *ret: NULL if the engine has no result, or does not answer. */
static int read_result(struct df_task_pass *p, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (p->observed.phase == DF_ENGINE_ABSENT || p->observed.is_unknown ||
        p->ops->result(p->engine, &p->step, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int copy_members(const cJSON *from, cJSON *to, struct df_err *err)
{
    const cJSON *member;
    if (!to)
        return df_fail_oom(err);
    cJSON_ArrayForEach (member, from)
        if (df_json_set(to, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    return 0;
}

/* The result has members of the status (engineRef, executionStatus), and annotations. */
static int put_result(cJSON *task, const cJSON *result, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    const cJSON *notes = df_json_at(result, "annotations");
    if (copy_members(result, status, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(status, "annotations");
    if (!notes)
        return 0;
    cJSON *metadata = df_json_object_at(task, "metadata");
    return copy_members(notes, df_json_object_at(metadata, "annotations"), err);
}

struct progress {
    const struct df_task_pass *pass;
    const cJSON *result; /* or NULL */
};

static int set_progress(cJSON *task, void *arg, struct df_err *err)
{
    const struct progress *new_progress = arg;
    const struct df_task_pass *p = new_progress->pass;
    bool runs = p->observed.phase == DF_ENGINE_RUNNING;
    if (df_task_is_final(task))
        return 1;
    if (put_result(task, new_progress->result, err) < 0 ||
        (runs && df_task_add_time(task, "started", p->now_us, err) < 0))
        return -1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, runs ? "Executing" : "Initializing",
                                  p->observed.cause, p->now_us, err);
}

/* A change of only executionStatus, the summary, is written after this delay. Most pods have
 * started or ended by then, and each write that is saved is a third of an action's cost. */
#define SUMMARY_LATE_US INT64_C(3000000)

/* When to write an observation of which only the summary is new; 0: now, because more is new. */
static int64_t summary_due_us(const struct df_task_pass *p, const cJSON *result)
{
    const cJSON *history = df_json_at(p->task, "status.phaseHistory");
    const cJSON *last = cJSON_GetArrayItem(history, cJSON_GetArraySize(history) - 1);
    const char *at = df_json_str(last, "occurredAt"), *message = df_task_message(p->task);
    const char *phase = p->observed.phase == DF_ENGINE_RUNNING ? "Executing" : "Initializing";
    int64_t at_us = 0;
    bool is_same =
        df_streq(df_task_reason(p->task), phase) &&
        df_streq(message ? message : "", p->observed.cause) &&
        df_json_equal(df_json_at(p->task, "status.engineRef"), df_json_at(result, "engineRef"));
    return is_same && at && df_time_parse(at, &at_us, NULL) == 0 ? at_us + SUMMARY_LATE_US : 0;
}

static bool is_reported(const struct df_task_pass *p, const cJSON *result)
{
    return df_json_equal(df_json_at(p->task, "status.executionStatus"),
                         df_json_at(result, "executionStatus"));
}

/* The store ignores an update that changes nothing. */
static int report(struct df_task_pass *p, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    if (df_task_is_final(p->task))
        return 0;
    if (read_result(p, &result, err) < 0)
        return -1;
    struct progress new_progress = {p, result};
    int64_t due_us = summary_due_us(p, result);
    if (due_us > p->now_us && !is_reported(p, result)) {
        df_task_pass_wake(p, due_us);
        return 0;
    }
    return result ? df_task_pass_modify(p, set_progress, &new_progress, err) : 0;
}

/* ---- ends ---- */

struct ending {
    const struct df_task_pass *pass;
    const struct df_task_verdict *verdict;
    const cJSON *result; /* or NULL */
    bool is_released;
    bool may_live;
};

/* The slot and the target are free; the step stays unfinished until it is released, too. */
static int finalize(cJSON *task, const struct ending *e, struct df_err *err)
{
    if (df_task_set_finalized(task, NULL, err) < 0)
        return -1;
    return e->is_released ? 0 : df_label_set(task, DF_LABEL_UNFINISHED, "true", err);
}

static int set_end(cJSON *task, void *arg, struct df_err *err)
{
    const struct ending *e = arg;
    const struct df_task_verdict *v = e->verdict;
    int64_t now_us = e->pass->now_us;
    if (df_task_is_final(task))
        return 1;
    bool ran = e->pass->observed.phase == DF_ENGINE_ENDED;
    if (put_result(task, e->result, err) < 0 ||
        (ran && df_task_add_time(task, "executed", now_us, err) < 0))
        return -1;
    const struct df_outcome_failure f = {.exit_code = e->pass->observed.exit_code,
                                         .fault = v->fault,
                                         .reason = v->reason,
                                         .message = v->message};
    int result = v->next == DF_TASK_SUCCEED
                     ? df_outcome_succeed(task, v->reason, v->message, now_us, err)
                     : df_outcome_fail(task, &f, now_us, err);
    return result < 0 || e->may_live ? result : finalize(task, e, err);
}

static int workflow_release(struct df_task_pass *p, struct df_err *err)
{
    const struct df_workflow_ops *ops = p->engine ? p->engine->ops->workflow : NULL;
    return ops && ops->release ? ops->release(p->engine, &p->step, err) : 0;
}

/* Its engine was asked to start it, and the answer was lost: only the release finds what runs. */
static bool is_lost(const struct df_task_pass *p)
{
    return p->step.was_created && !p->step.ref;
}

static int workflow_end(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    struct df_err why = {0};
    struct df_task_verdict told = *v;
    if (read_result(p, &result, err) < 0)
        return -1;
    struct ending e = {p, &told, result, is_alive(p) || workflow_release(p, &why) == 0, false};
    e.may_live = is_alive(p) || (!e.is_released && is_lost(p));
    if (!e.is_released)
        df_warn("what %s used is removed later: %s", p->step.name, why.message);
    if (!e.is_released && e.may_live)
        (void)snprintf(told.message, sizeof(told.message),
                       "%.400s; whether it runs was not known then: %.500s", v->message,
                       why.message);
    if (df_task_pass_modify(p, set_end, &e, err) < 0)
        return -1;
    if (!e.may_live)
        df_task_pass_yield(p);
    return 0;
}

/* ---- the queue of a target ---- */

static void forget_time(cJSON *task, const char *name)
{
    cJSON *timeline = df_json_array_at(df_json_object_at(task, "status"), "timeline");
    int i = 0;
    for (const cJSON *entry = timeline ? timeline->child : NULL; entry; entry = entry->next, i++) {
        if (df_streq(df_json_str(entry, "name"), name)) {
            cJSON_DeleteItemFromArray(timeline, i);
            return;
        }
    }
}

/* A workflow that waits for its target holds no slot. `created` is removed, because no Job was
 * created and the creation will be repeated. */
static int set_locked(cJSON *task, void *arg, struct df_err *err)
{
    const char *holder = arg;
    cJSON *status = df_json_object_at(task, "status");
    char message[400];
    if (df_task_is_final(task))
        return 1;
    (void)snprintf(message, sizeof(message), "waits for its target, which is held by %s", holder);
    forget_time(task, "created");
    if (df_json_set_str(status, "lockedBy", holder, err) < 0 || df_slot_clear(task, err) < 0)
        return -1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", message, df_real_us(), err);
}

static int wait_for_target(struct df_task_pass *p, const char *holder, struct df_err *err)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "%s", holder);
    if (df_task_pass_modify(p, set_locked, text, err) < 0)
        return -1;
    df_slots_dequeue(&p->c->slots, p->step.name);
    df_slots_wake(&p->c->slots);
    return 0;
}

/* ---- begin ---- */

static int wait_behind(struct df_task_pass *p, const char *name, struct df_err *err)
{
    char holder[80];
    (void)snprintf(holder, sizeof(holder), DF_QUEUED_BEHIND "%s", name);
    df_task_pass_wake(p, p->now_us + QUEUED_AGAIN_US);
    return wait_for_target(p, holder, err);
}

/* *ret: false while an earlier action on the same target has not ended. Who holds the target is not
 * sent back by an earlier one that comes into the queue now: its object may exist. */
static int workflow_may_begin(struct df_task_pass *p, bool *ret, struct df_err *err)
{
    char first[64] = "";
    *ret = true;
    if (df_label_has(p->task, DF_LABEL_LIVE))
        return 0;
    if (df_lock_queue_first(p->c->s->store, DF_KIND_TASK_ACTION,
                            df_label_get(p->task, DF_LABEL_QUEUE), first, err) < 0)
        return -1;
    *ret = !*first || df_streq(first, p->step.name);
    return *ret ? 0 : wait_behind(p, first, err);
}

/* What the pass knows may be older than the document: the engine looks for what another one has
 * begun, but only if it is told of that. */
static int workflow_set_begun(cJSON *task, struct df_task_pass *p, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    if (!p->step.was_created && df_label_has(task, DF_LABEL_LIVE))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict", "another pass has begun it");
    if (!status)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(status, "lockedBy");
    return 0;
}

static int workflow_begin(struct df_task_pass *p, struct df_err *err)
{
    bool has_slot = false, made = false;
    if (df_task_take_slot(p, &has_slot, err) < 0)
        return -1;
    if (p->holder[0])
        return wait_behind(p, p->holder, err);
    return has_slot ? df_task_create_runner(p, &made, err) : 0;
}

static int workflow_refused(struct df_task_pass *p, const struct df_err *why, bool *ret_handled,
                            struct df_err *err)
{
    *ret_handled = df_streq(why->reason, "TargetLocked");
    return *ret_handled ? wait_for_target(p, why->message, err) : 0;
}

/* ---- report and clean up ---- */

/* The engine can start none now: it was not asked, and the workflow holds no slot. */
static int set_unavailable(cJSON *task, void *arg, struct df_err *err)
{
    const struct df_task_pass *p = arg;
    if (df_task_is_final(task))
        return 1;
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(task, "status"), "lockedBy");
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", p->observed.cause, p->now_us,
                                  err);
}

static int workflow_report(struct df_task_pass *p, struct df_err *err)
{
    if (p->observed.phase != DF_ENGINE_ABSENT)
        return report(p, err);
    /* While the workflow waits for its target, the holder of the target may change. */
    return df_streq(p->observed.reason, "TargetLocked")
               ? wait_for_target(p, p->observed.cause, err)
               : df_task_pass_modify(p, set_unavailable, p, err);
}

/* The engine's object stays for inspection until its TTL, the next action on the target, or the
 * deletion of the document. Nothing notifies this pass of the Job's removal, so a deleted document
 * is observed again after a delay. */
static int workflow_clean(struct df_task_pass *p, struct df_err *err)
{
    if (df_doc_is_deleted(p->task))
        p->wake_us = p->now_us + CLEAN_AGAIN_US;
    return p->ops->cleanup(p->engine, &p->step, err);
}

const struct df_task_hooks df_workflow_hooks = {
    .outlives_system = true,
    .after_observe = df_workflow_keep_log,
    .may_begin = workflow_may_begin,
    .set_begun = workflow_set_begun,
    .begin = workflow_begin,
    .refused = workflow_refused,
    .report = workflow_report,
    .end = workflow_end,
    .release = workflow_release,
    .clean = workflow_clean,
};
