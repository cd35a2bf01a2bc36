/*
 * outcome.h - what a runner says about its step, taken over into the TaskAction, and how a step
 * ends. Changes documents in memory only. Thread rule: pure functions.
 *
 * What a runner says is checked like any input: a module runs code of its own beside it.
 */
#ifndef DF_STEPS_OUTCOME_H
#define DF_STEPS_OUTCOME_H

#include "spawner/model/model.h"

/* Merges the members that a progress report and a result share: timeline, source, tool,
 * lockFileSha256, hasChanges, planSummary. Unknown members are ignored; class USER for known ones
 * that are not what they should be. */
int df_outcome_merge(cJSON *task, const cJSON *report, int64_t now_us,
                     struct df_err *err) DF_MUST_CHECK;

/* Says in the status what may exist that no state records (unrecorded.h): a failing end, which
 * comes after it, tells of it in its message, a successful one takes it away. NULL: nothing to say.
 */
int df_outcome_unrecorded(cJSON *task, const cJSON *unrecorded, struct df_err *err) DF_MUST_CHECK;

/* The end that a runner reports. Class USER for a malformed result. */
int df_outcome_result(cJSON *task, const cJSON *result, int64_t now_us,
                      struct df_err *err) DF_MUST_CHECK;

/* What a runner says that was interrupted (df_task_was_interrupted()): kept as status.interrupted,
 * no end yet. The same again changes nothing. Class USER for a malformed result. */
int df_outcome_interrupted(cJSON *task, const cJSON *result, int64_t now_us,
                           struct df_err *err) DF_MUST_CHECK;

/* An end in failure that nobody reports. */
struct df_outcome_failure {
    int exit_code;       /* -1: unknown */
    enum df_fault fault; /* NONE: as the reason says */
    const char *reason, *message;
};
int df_outcome_fail(cJSON *task, const struct df_outcome_failure *f, int64_t now_us,
                    struct df_err *err) DF_MUST_CHECK;

/* An end in success that nobody reports. */
int df_outcome_succeed(cJSON *task, const char *reason, const char *message, int64_t now_us,
                       struct df_err *err) DF_MUST_CHECK;

#endif
