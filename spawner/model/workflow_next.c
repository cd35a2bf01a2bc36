/*
 * The state machine of a workflow. The engine creates it once. It ends as the engine observes, or
 * at one of three deadlines: its target is locked too long, it does not start, or it does not end.
 */
#include "common/base/limits.h"
#include "spawner/model/task_parts.h"
#include "spawner/model/workflow.h"

#define SECOND_US INT64_C(1000000)
#define MARGIN_US (DF_TIMEOUT_MARGIN_SECONDS * SECOND_US)
/* Interval at which a cancel is repeated while it has no effect. */
#define CANCEL_AGAIN_US (5 * SECOND_US)
/* Interval of checks of what the engine refuses now: the holder of a locked target may be unknown
 * to this service, and nobody tells that Tekton was installed. */
#define REFUSED_AGAIN_US (5 * SECOND_US)

static int64_t duration_us(const cJSON *task, const char *path, int64_t fallback)
{
    return df_json_int(task, path, fallback) * SECOND_US;
}

static int64_t pending_us(const cJSON *task)
{
    return duration_us(task, "spec.pendingSeconds", DF_TIMEOUT_PENDING_SECONDS);
}

/* Until when it may run. since_us 0: the engine was asked for it at `created`, and nobody knows
 * more; before that: until when it may wait for its target. */
static int64_t end_of(const cJSON *task, int64_t since_us)
{
    int64_t limit = duration_us(task, "spec.timeoutSeconds", DF_WORKFLOW_DEADLINE_SECONDS);
    int64_t asked = df_task_timeline(task, "created", df_task_timeline(task, "queued", 0));
    int64_t begin = since_us ? since_us : asked;
    return df_task_time(task, "spec.workflow.timesOutAt", begin + limit);
}

/* ---- verdicts ---- */

static struct df_task_verdict decide(enum df_task_next what, int64_t wake_us)
{
    return (struct df_task_verdict){.next = what, .wake_us = wake_us};
}

static struct df_task_verdict end_with(enum df_task_next what, const char *reason,
                                       const char *message)
{
    struct df_task_verdict v = {.next = what};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    (void)snprintf(v.message, sizeof(v.message), "%s", message);
    return v;
}

static struct df_task_verdict fail_with(const char *reason, const char *message)
{
    return end_with(DF_TASK_FAIL, reason, message);
}

/* Fails with the observed cause if there is one, else with the given reason and message. */
static struct df_task_verdict fail_as_observed(const struct df_engine_observation *observed,
                                               const char *reason, const char *message)
{
    struct df_task_verdict v = observed->reason[0] ? fail_with(observed->reason, observed->cause)
                                                   : fail_with(reason, message);
    v.fault = observed->reason[0] ? observed->fault : DF_FAULT_NONE;
    return v;
}

static struct df_task_verdict cancel_now(int64_t now_us)
{
    return decide(DF_TASK_CANCEL, now_us + CANCEL_AGAIN_US);
}

/* ---- the states ---- */

/* The engine was asked to create the workflow, and it is absent: the request was lost, or the Job
 * is gone. Create it again only while it is too early for a Job that has ended and been removed. */
static struct df_task_verdict when_asked_for(const cJSON *task,
                                             const struct df_engine_observation *observed,
                                             int64_t created_us, int64_t now_us)
{
    int64_t wait = pending_us(task), gone = DF_WORKFLOW_TTL_SECONDS * SECOND_US;
    if (now_us < created_us + (wait < gone ? wait : gone))
        return decide(DF_TASK_CREATE, 0);
    return fail_as_observed(
        observed, "JobDeleted",
        "it may have run: it is absent, although the engine was asked to create it");
}

static struct df_task_verdict fail_locked(const char *holder)
{
    struct df_task_verdict v = fail_with("TargetLocked", "");
    (void)snprintf(v.message, sizeof(v.message), "its target is still held by %.400s", holder);
    return v;
}

static struct df_task_verdict
when_absent(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    int64_t created = df_task_timeline(task, "created", 0);
    const char *holder = df_json_str(task, "status.lockedBy");
    int64_t end_us = end_of(task, 0), again_us = now_us + REFUSED_AGAIN_US;
    bool is_late = now_us >= end_us;
    if (df_task_is_canceled(task))
        return fail_with("Canceled", "canceled");
    if (df_json_at(task, "status.engineRef"))
        return fail_with("JobDeleted", "it was deleted externally");
    if (created)
        return when_asked_for(task, observed, created, now_us);
    if (holder && is_late)
        return fail_locked(holder);
    if (is_late && df_json_at(task, "spec.workflow.timesOutAt"))
        return fail_with("TimedOut", "spec.workflow.timesOutAt passed before it could start");
    if (observed->takes_none || (holder && df_streq(observed->reason, "TargetLocked")))
        return decide(DF_TASK_WAIT, is_late || again_us < end_us ? again_us : end_us);
    return decide(DF_TASK_CREATE, 0);
}

/* An engine that does not answer is asked for a while after a start of the service: it may know of
 * an end meanwhile. */
static int64_t extend_deadline(int64_t deadline_us, const struct df_engine_observation *observed)
{
    int64_t moment = observed->reachable_since_us + 2 * MARGIN_US;
    return observed->is_unknown && deadline_us < moment ? moment : deadline_us;
}

/* What ended too late may live, and its message tells how much is known of that. */
static struct df_task_verdict fail_late(const struct df_engine_observation *observed,
                                        const char *reason, const char *words)
{
    struct df_task_verdict v = fail_with(reason, words);
    if (observed->is_unknown)
        (void)snprintf(v.message, sizeof(v.message), "%s; whether it has ended is not known: %s",
                       words, observed->cause);
    return v;
}

static struct df_task_verdict
when_alive(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    int64_t start = observed->since_us + pending_us(task);
    int64_t late = extend_deadline(end_of(task, observed->since_us) + 2 * MARGIN_US, observed);
    int64_t canceled = extend_deadline(df_task_canceled_at(task, now_us) + 2 * MARGIN_US, observed);
    if (df_task_is_canceled(task))
        return now_us < canceled
                   ? cancel_now(now_us)
                   : fail_late(observed, "Canceled", "canceled, and it did not end in time");
    if (observed->gives_up)
        return fail_as_observed(observed, "EngineFailed", "it cannot come to an end");
    if (now_us >= late) /* the engine should have ended it */
        return fail_late(observed, "TimedOut", "it ran out of time");
    bool waits = observed->phase == DF_ENGINE_PENDING && now_us < start && start < late;
    return decide(DF_TASK_WAIT, waits ? start : late);
}

struct df_task_verdict
df_workflow_next(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    bool is_alive = observed->phase == DF_ENGINE_PENDING || observed->phase == DF_ENGINE_RUNNING;
    if (df_task_is_final(task))
        return is_alive ? cancel_now(now_us) : decide(DF_TASK_WAIT, 0);
    if (observed->phase == DF_ENGINE_ABSENT)
        return when_absent(task, observed, now_us);
    if (is_alive)
        return when_alive(task, observed, now_us);
    if (observed->exit_code == 0)
        return end_with(DF_TASK_SUCCEED, "Completed", "");
    return df_task_is_canceled(task) ? fail_with("Canceled", "canceled")
                                     : fail_as_observed(observed, "WorkflowFailed", "it failed");
}
