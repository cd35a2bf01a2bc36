/*
 * task_status.h - reads and writes the status of a step: conditions, phases, history, timeline,
 * claim and cancel. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_TASK_STATUS_H
#define DF_MODEL_TASK_STATUS_H

#include "common/json/json.h"

/* Has the step ended: is its condition Succeeded or Failed True? */
bool df_task_is_final(const cJSON *task);
/* Is its condition Succeeded True? */
bool df_task_succeeded(const cJSON *task);
/* Reason of the Progressing condition ("Queued", "Initializing", "Executing", or the final one). */
const char *df_task_reason(const cJSON *task);

/* Message of that condition, or NULL. */
const char *df_task_message(const cJSON *task);

/* When it got its final condition, or fallback. */
int64_t df_task_ended_at(const cJSON *task, int64_t fallback);

/* Sets the conditions Progressing, Succeeded and Failed of a run or step together, each True or
 * False, with observedGeneration, and lastTransitionTime where a status changes. message may be
 * NULL. */
enum df_outcome { DF_OUTCOME_NONE, DF_OUTCOME_SUCCEEDED, DF_OUTCOME_FAILED };
int df_set_conditions(cJSON *doc, enum df_outcome outcome, const char *reason, const char *message,
                      int64_t now_us, struct df_err *err) DF_MUST_CHECK;

/* The same for a step; also extends its phase history and, for a failure, sets status.errorState.
 * */
int df_task_set_conditions(cJSON *task, enum df_outcome outcome, const char *reason,
                           const char *message, int64_t now_us, struct df_err *err) DF_MUST_CHECK;

/* ---- phases ---- */

/* The reporter of the Events that this service writes. It ignores them when it reads Events. */
#define DF_EVENTS_REPORTER "dayfly.dev/spawner"

/* status.phaseHistory[] {phase, occurredAt, message} has the phases Queued, Initializing,
 * Executing, RetryableFailure (an attempt was lost, another follows), Completed, PermanentFailure,
 * Aborted and TimedOut, in the order in which this service observed them. A phase that equals the
 * last entry is not added. The list has at most DF_LIMIT_PHASE_HISTORY entries, the last one
 * reserved for the end. message: why, or absent; of an end "<reason>: <message>".
 *
 * df_task_phase() computes the phase of a run or a step from its conditions alone; the numbers are
 * those of flyteidl2's ActionPhase. */
enum df_task_phase {
    DF_TASK_PHASE_UNSPECIFIED = 0,
    DF_TASK_PHASE_QUEUED = 1,
    DF_TASK_PHASE_INITIALIZING = 3,
    DF_TASK_PHASE_RUNNING = 4,
    DF_TASK_PHASE_SUCCEEDED = 5,
    DF_TASK_PHASE_FAILED = 6,
    DF_TASK_PHASE_ABORTED = 7,
    DF_TASK_PHASE_TIMED_OUT = 8,
    DF_TASK_PHASE_PAUSED = 9
};
enum df_task_phase df_task_phase(const cJSON *doc);

/* The origin of a failure: in status.errorState {code, kind, message} of a failed step, kind is
 * "USER" or "SYSTEM", or "" if it is unknown. */
enum df_fault { DF_FAULT_NONE, DF_FAULT_USER, DF_FAULT_SYSTEM };
const char *df_fault_name(enum df_fault fault);

/* Is it one of dayfly's reason words (docs/objects.md)? df_reason_fault(): the fault that the word
 * implies; NONE if it implies none, and for a success. */
bool df_reason_is_known(const char *reason);
enum df_fault df_reason_fault(const char *reason);

/* Adds {name, at} to the timeline unless it already has an entry of this name. */
int df_task_add_time(cJSON *task, const char *name, int64_t at_us,
                     struct df_err *err) DF_MUST_CHECK;

/* Has a runner claimed it? */
bool df_task_has_runner(const cJSON *task);

/* Was the document deleted in the cluster? The step then ends, with the reason Aborted instead of
 * Canceled, and the document is removed when nothing is left of it. */
bool df_doc_is_deleted(const cJSON *doc);
/* Was it canceled, or its document deleted? */
bool df_task_is_canceled(const cJSON *task);

#endif
