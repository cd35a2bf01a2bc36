/*
 * The state machine of a step. The engine creates it, its runner claims it once, and it ends with a
 * result or at one of three deadlines: it was not claimed in time, it exceeded its timeout, or it
 * did not end after a cancel. If there is no result, the engine's observation gives the reason.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/model.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/model/task_parts.h"
#include "spawner/model/waiting.h"
#include "spawner/model/workflow.h"

/* ---- deadlines ---- */

#define SECOND_US INT64_C(1000000)
#define MARGIN_US (DF_TIMEOUT_MARGIN_SECONDS * SECOND_US)
/* A runner that died before its claim is started again after this pause. */
#define RECREATE_PAUSE_US (2 * SECOND_US)
/* Interval at which a cancel is repeated while it has no effect. */
#define CANCEL_AGAIN_US (5 * SECOND_US)
/* Bounds of the pause before a refused create() is tried again. */
#define RETRY_MIN_US (SECOND_US / 4)
#define RETRY_MAX_US (15 * SECOND_US)

static int64_t duration_us(const cJSON *task, const char *path, int64_t fallback)
{
    return df_json_int(task, path, fallback) * SECOND_US;
}

static int64_t grace_us(const cJSON *task)
{
    return duration_us(task, "spec.graceSeconds", DF_TIMEOUT_GRACE_SECONDS);
}

/* Extends a deadline by which a runner must contact this service. began_us: start of the period. If
 * the service was unreachable during a part of it, the runner gets MARGIN_US after the service is
 * reachable again. */
static int64_t extend_deadline(int64_t deadline_us, int64_t began_us,
                               const struct df_engine_observation *observed)
{
    int64_t moment = observed->reachable_since_us + MARGIN_US;
    bool was_away = began_us < observed->reachable_since_us;
    return deadline_us && was_away && deadline_us < moment ? moment : deadline_us;
}

/* 0: the engine was not asked to create the step yet. */
static int64_t claim_deadline(const cJSON *task, const struct df_engine_observation *observed)
{
    bool there = observed->phase != DF_ENGINE_ABSENT;
    int64_t created = df_task_timeline(task, "created", there ? observed->since_us : 0);
    int64_t deadline =
        created + duration_us(task, "spec.pendingSeconds", DF_TIMEOUT_PENDING_SECONDS);
    return created ? extend_deadline(deadline, created, observed) : 0;
}

static int64_t claimed_at(const cJSON *task, const struct df_engine_observation *observed)
{
    return df_task_time(task, "status.claimedBy.at", observed->since_us);
}

/* When the timeout of a claimed step, its grace period and the margin are over. */
static int64_t run_deadline(const cJSON *task, const struct df_engine_observation *observed)
{
    return claimed_at(task, observed) +
           duration_us(task, "spec.timeoutSeconds", DF_TIMEOUT_STEP_SECONDS) + grace_us(task) +
           MARGIN_US;
}

/* A quarter: the storage may come back, and one request that it leaves without an answer takes
 * three minutes of the fifteen. */
int64_t df_task_gives_up_at(const cJSON *task)
{
    int64_t claimed = df_task_time(task, "status.claimedBy.at", 0);
    int64_t canceled = df_task_is_canceled(task) ? df_task_canceled_at(task, 0) : 0;
    int64_t stop = claimed + duration_us(task, "spec.timeoutSeconds", DF_TIMEOUT_STEP_SECONDS);
    if (!claimed)
        return INT64_MAX;
    if (canceled && canceled < stop)
        stop = canceled;
    return stop + grace_us(task) / 4;
}

/* ---- verdicts ---- */

static struct df_task_verdict decide(enum df_task_next what, int64_t wake_us)
{
    return (struct df_task_verdict){.next = what, .wake_us = wake_us};
}

static struct df_task_verdict cancel_now(int64_t now_us)
{
    return decide(DF_TASK_CANCEL, now_us + CANCEL_AGAIN_US);
}

static struct df_task_verdict fail_with(const struct df_engine_observation *observed,
                                        const char *reason, const char *message)
{
    struct df_task_verdict v = {.next = DF_TASK_FAIL};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
    (void)snprintf(v.message, sizeof(v.message), "%s%s%s", message, observed->cause[0] ? ": " : "",
                   observed->cause);
    return v;
}

/* ---- why the runner ended ---- */

/* These two only say that an object is gone, which is true of every end. Any other reason is more
 * exact. */
static bool is_deletion(const char *reason)
{
    return df_streq(reason, "PodDeleted") || df_streq(reason, "JobDeleted");
}

/* Reasons for which the runner's own result is more exact than the engine's observation. */
static bool is_runners_own(const char *reason)
{
    return df_streq(reason, "RunnerFailed") || df_streq(reason, "InvalidStep") ||
           df_streq(reason, "TimedOut");
}

struct cause {
    const char *reason, *message; /* borrowed; reason NULL: unknown */
    enum df_fault fault;          /* NONE: df_reason_fault() */
};

/* The more exact cause: the current observation, or the one stored in status.disruption. */
static struct cause cause_of(const cJSON *task, const struct df_engine_observation *observed)
{
    const struct cause kept = {df_json_str(task, "status.disruption.reason"),
                               df_json_str(task, "status.disruption.message"), DF_FAULT_NONE};
    bool is_known = observed->reason[0] && !(kept.reason && is_deletion(observed->reason));
    if (!is_known || (kept.reason && is_runners_own(observed->reason)))
        return kept;
    return (struct cause){observed->reason, observed->cause, observed->fault};
}

bool df_task_is_disruption(const cJSON *task, const struct df_engine_observation *observed)
{
    const char *kept = df_json_str(task, "status.disruption.reason");
    return observed->phase == DF_ENGINE_RUNNING && observed->reason[0] && !df_task_is_final(task) &&
           df_task_has_runner(task) && !df_task_is_canceled(task) &&
           !is_runners_own(observed->reason) && !df_streq(observed->reason, kept) &&
           !(kept && is_deletion(observed->reason));
}

bool df_task_was_interrupted(const cJSON *task, const cJSON *result, bool is_elsewhere)
{
    return is_elsewhere && df_streq(df_json_str(result, "reason"), "Canceled") &&
           !df_task_is_canceled(task);
}

/* Fails with the observed cause if there is one, else with the given reason and message. */
static struct df_task_verdict fail_as_observed(const cJSON *task,
                                               const struct df_engine_observation *observed,
                                               const char *reason, const char *message)
{
    struct df_task_verdict v = fail_with(observed, reason, message);
    const struct cause cause = cause_of(task, observed);
    if (!cause.reason)
        return v;
    v.fault = cause.fault;
    (void)snprintf(v.reason, sizeof(v.reason), "%s", cause.reason);
    (void)snprintf(v.message, sizeof(v.message), "%s", cause.message ? cause.message : "");
    return v;
}

/* Between two attempts there is nothing to observe: then the message includes that of the last
 * condition. */
static struct df_task_verdict fail_unclaimed(const cJSON *task,
                                             const struct df_engine_observation *observed)
{
    struct df_task_verdict v =
        fail_as_observed(task, observed, "NeverClaimed", "the runner did not report in time");
    const char *last = df_task_message(task);
    if (!observed->reason[0] && !observed->cause[0] && !df_str_empty(last))
        (void)snprintf(v.message, sizeof(v.message), "the runner did not report in time: %s", last);
    return v;
}

static bool is_alive(const struct df_engine_observation *observed)
{
    return observed->phase == DF_ENGINE_PENDING || observed->phase == DF_ENGINE_RUNNING;
}

/* ---- lost attempts ---- */

static int64_t lost_attempts(const cJSON *task)
{
    return df_json_int(task, "status.systemFailures", 0);
}

/* True if an attempt ended before its claim and is not counted yet. A canceled attempt is not lost,
 * and neither is one that would fail again in the same way, nor an offer to the pod of another
 * step. */
static bool is_lost_attempt(const cJSON *task, const struct df_engine_observation *observed)
{
    const cJSON *made = df_shared_pod_host(task) ? NULL : df_json_at(task, "status.engineRef");
    bool was_lost =
        made && !is_alive(observed) && !observed->gives_up && !df_task_is_canceled(task);
    return was_lost && !df_json_bool(made, "lost", false) && !df_task_has_runner(task);
}

int df_task_count_lost_attempt(cJSON *task, const struct df_engine_observation *observed,
                               int64_t now_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    if (!is_lost_attempt(task, observed))
        return 0;
    int64_t n = lost_attempts(task) + 1;
    if (df_json_set(df_json_object_at(status, "engineRef"), "lost", cJSON_CreateTrue(), err) < 0 ||
        df_json_set(status, "systemFailures", cJSON_CreateNumber((double)n), err) < 0)
        return -1;
    const char *why =
        observed->cause[0] ? observed->cause : "the runner ended before it claimed its step";
    DF_FREE char *text = df_strf("%s%s%s", observed->reason, observed->reason[0] ? ": " : "", why);
    return text ? df_task_note_retry(task, text, now_us, err) : df_fail_oom(err);
}

int df_task_count_attempt(cJSON *task, struct df_err *err)
{
    return df_json_set(df_json_object_at(task, "status"), "attempts", cJSON_CreateNumber(1), err);
}

int df_task_reset_failures(cJSON *task, struct df_err *err)
{
    cJSON *status = df_json_object_at(task, "status");
    return lost_attempts(task) ? df_json_set(status, "systemFailures", cJSON_CreateNumber(0), err)
                               : 0;
}

static bool has_too_many_failures(const cJSON *task, const struct df_engine_observation *observed)
{
    int64_t max =
        observed->max_system_failures ? observed->max_system_failures : DF_MAX_SYSTEM_FAILURES;
    return lost_attempts(task) + is_lost_attempt(task, observed) > max;
}

static struct df_task_verdict fail_exhausted(const struct df_engine_observation *observed)
{
    return fail_with(observed, "MaxSystemFailuresExceeded",
                     "one attempt after the other was lost before its runner claimed the step");
}

/* ---- the states ---- */

/* The document is deleted: clean up until the engine holds nothing, then remove the document. */
static struct df_task_verdict when_deleted(const struct df_engine_observation *observed)
{
    return decide(observed->is_gone ? DF_TASK_REMOVE : DF_TASK_CLEAN, 0);
}

/* A runner that has reported is about to exit. If it is still alive after the margin, cancel it. */
/* How soon a step is looked at again whose pod is lent, if the end of the other step does not wake
 * it. */
#define LENT_AGAIN_US (60 * SECOND_US)

static struct df_task_verdict
when_final(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    if (observed->phase == DF_ENGINE_ABSENT)
        return decide(DF_TASK_WAIT, 0);
    if (!is_alive(observed))
        return decide(DF_TASK_CLEAN, 0);
    int64_t end = df_task_ended_at(task, observed->since_us) + MARGIN_US;
    bool may_leave = df_task_has_runner(task) && now_us < end;
    return may_leave ? decide(DF_TASK_WAIT, end) : cancel_now(now_us);
}

/* A standby runner that waits claims at once, and one that starts within seconds. */
#define OFFERED_US (30 * SECOND_US)

/* The step was offered to a standby runner or to the pod of another step. It gets resources of its
 * own if that pod is gone, cannot start, or does not take the offer in time. */
static struct df_task_verdict when_offered(const cJSON *task,
                                           const struct df_engine_observation *observed,
                                           int64_t deadline, int64_t now_us)
{
    int64_t created = df_task_timeline(task, "created", 0);
    bool is_standby = !df_shared_pod_is_of_plan(df_json_at(task, "status.engineRef"));
    if (is_standby && created && created + OFFERED_US < deadline)
        deadline = extend_deadline(created + OFFERED_US, created, observed);
    bool is_over = !is_alive(observed) || observed->gives_up || (deadline && now_us >= deadline);
    return is_over ? decide(DF_TASK_CREATE, 0) : decide(DF_TASK_WAIT, deadline);
}

/* No runner has claimed the step. */
static struct df_task_verdict
when_unclaimed(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    int64_t deadline = claim_deadline(task, observed);
    if (df_task_is_canceled(task)) {
        int64_t end = df_task_canceled_at(task, observed->since_us) + MARGIN_US;
        return is_alive(observed) && now_us < end
                   ? cancel_now(now_us)
                   : fail_with(observed, "Canceled", "canceled before it began");
    }
    if (df_shared_pod_host(task))
        return when_offered(task, observed, deadline, now_us);
    if (observed->gives_up || (deadline && now_us >= deadline))
        return fail_unclaimed(task, observed);
    if (is_alive(observed) && !observed->is_unrecorded)
        return decide(DF_TASK_WAIT, deadline);
    if (has_too_many_failures(task, observed))
        return fail_exhausted(observed);
    bool pause =
        observed->phase == DF_ENGINE_ENDED && now_us < observed->since_us + RECREATE_PAUSE_US;
    return pause ? decide(DF_TASK_WAIT, observed->since_us + RECREATE_PAUSE_US)
                 : decide(DF_TASK_CREATE, 0);
}

/* ---- waits ---- */

/* When a step that writes no state fails, because what it waits for does not come; 0: never. */
static int64_t wait_deadline(const cJSON *task, const struct df_engine_observation *observed)
{
    bool may_end = df_json_str(task, "status.waiting.reason") && !df_recipe_step_of(task)->writes;
    int64_t since_us = may_end ? df_waiting_since(task) : 0;
    if (since_us && since_us < observed->reachable_since_us) /* nobody knows what was before */
        since_us = observed->reachable_since_us;
    return since_us ? since_us + DF_TIMEOUT_STORAGE_SECONDS * SECOND_US : 0;
}

static struct df_task_verdict fail_waiting(const cJSON *task)
{
    DF_FREE char *text = df_waiting_text(df_waiting_of(task), true);
    struct df_task_verdict v = {.next = DF_TASK_FAIL};
    (void)snprintf(v.reason, sizeof(v.reason), "%s", df_json_str(task, "status.waiting.reason"));
    (void)snprintf(v.message, sizeof(v.message), "%s", text ? text : "waited in vain");
    return v;
}

/* Its runner gave up before it had anything to do. */
static bool is_lost_in_wait(const cJSON *task, const struct df_engine_observation *observed)
{
    return df_json_str(task, "status.waiting.reason") && !cause_of(task, observed).reason &&
           !df_task_timeline(task, "started", 0);
}

static struct df_task_verdict when_claimed_and_gone(const cJSON *task,
                                                    const struct df_engine_observation *observed,
                                                    int64_t now_us)
{
    if (df_task_is_canceled(task)) {
        struct df_engine_observation quiet = *observed;
        if (is_deletion(observed->reason)) /* our own cancel deleted it */
            quiet.cause[0] = '\0';
        return fail_with(&quiet, "Canceled", "canceled, and its runner ended without a result");
    }
    if (now_us >= run_deadline(task, observed))
        return fail_with(observed, "TimedOut",
                         "it ran out of time, and its runner ended without a result");
    if (is_lost_in_wait(task, observed))
        return fail_waiting(task);
    return fail_as_observed(task, observed, "RunnerLost", "the runner ended without a result");
}

static struct df_task_verdict when_claimed_and_alive(const cJSON *task,
                                                     const struct df_engine_observation *observed,
                                                     int64_t now_us)
{
    int64_t late =
        extend_deadline(run_deadline(task, observed), claimed_at(task, observed), observed);
    int64_t end = late + grace_us(task) + MARGIN_US;
    if (df_task_is_canceled(task)) {
        int64_t canceled = df_task_canceled_at(task, late) + grace_us(task) + 2 * MARGIN_US;
        end = canceled < end ? canceled : end;
        if (now_us >= end)
            return fail_with(observed, "Canceled",
                             "canceled, and it did not end within its grace period");
        return cancel_now(now_us);
    }
    if (now_us >= end) {
        const char *kept = df_json_str(task, "status.disruption.reason");
        const char *words = "it ran out of time and could not be ended";
        return kept && !is_deletion(kept) ? fail_as_observed(task, observed, "TimedOut", words)
                                          : fail_with(observed, "TimedOut", words);
    }
    int64_t in_vain = wait_deadline(task, observed);
    if (in_vain && now_us >= in_vain)
        return fail_waiting(task);
    if (now_us >= late)
        return cancel_now(now_us);
    return decide(DF_TASK_WAIT, in_vain && in_vain < late ? in_vain : late);
}

/* The runner got a SIGTERM and has reported how tofu ended. The cause of the SIGTERM is known when
 * the pod has ended, or earlier. */
static struct df_task_verdict
when_interrupted(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us)
{
    int64_t at = df_task_time(task, "status.interrupted.at", now_us), end = at + MARGIN_US;
    const char *word = df_json_str(task, "status.interrupted.message");
    const struct cause cause = cause_of(task, observed);
    struct df_task_verdict v = {.next = DF_TASK_FAIL};
    if (is_alive(observed) && now_us < end)
        return decide(DF_TASK_WAIT, end);
    bool canceled = df_task_is_canceled(task) || !cause.reason || is_runners_own(cause.reason);
    if (canceled || at >= run_deadline(task, observed)) {
        (void)snprintf(v.reason, sizeof(v.reason), "%s", canceled ? "Canceled" : "TimedOut");
        (void)snprintf(v.message, sizeof(v.message), "%s", word ? word : "canceled");
        return v;
    }
    v.fault = cause.fault;
    (void)snprintf(v.reason, sizeof(v.reason), "%s", cause.reason);
    (void)snprintf(v.message, sizeof(v.message), "%.700s (the runner: %.280s)",
                   cause.message ? cause.message : "", word ? word : "");
    return v;
}

int64_t df_task_age_us(const cJSON *task, int64_t now_us)
{
    return now_us - df_task_timeline(task, "created", now_us);
}

int64_t df_task_retry_at(const cJSON *task, int64_t now_us, int64_t pause_us)
{
    int64_t created = df_task_timeline(task, "created", now_us);
    int64_t deadline =
        created + duration_us(task, "spec.pendingSeconds", DF_TIMEOUT_PENDING_SECONDS);
    int64_t pause = (now_us - created) / 4;
    pause = pause < RETRY_MIN_US ? RETRY_MIN_US : pause > RETRY_MAX_US ? RETRY_MAX_US : pause;
    int64_t at = now_us + (pause < pause_us ? pause_us : pause);
    return now_us < deadline && deadline < at ? deadline : at;
}

struct df_task_verdict df_task_next(const cJSON *task, const struct df_engine_observation *observed,
                                    int64_t now_us)
{
    if (df_task_is_final(task) && observed->serves_other_step)
        return decide(DF_TASK_WAIT, now_us + LENT_AGAIN_US);
    if (df_task_is_final(task) && df_doc_is_deleted(task) && !is_alive(observed))
        return when_deleted(observed);
    if (df_task_is_workflow(task))
        return df_workflow_next(task, observed, now_us);
    if (df_task_is_final(task))
        return when_final(task, observed, now_us);
    if (df_json_at(task, "status.interrupted"))
        return when_interrupted(task, observed, now_us);
    if (observed->phase == DF_ENGINE_ENDED && observed->has_result)
        return decide(DF_TASK_COLLECT, 0);
    if (!df_task_has_runner(task))
        return when_unclaimed(task, observed, now_us);
    return is_alive(observed) ? when_claimed_and_alive(task, observed, now_us)
                              : when_claimed_and_gone(task, observed, now_us);
}
