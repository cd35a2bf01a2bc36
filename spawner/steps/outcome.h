/*
 * outcome.h - writes the reports of a runner and the end of a step into the TaskAction, in memory
 * only. Thread rule: pure functions.
 *
 * Reports are validated like any other input: a module can execute its own code beside the runner.
 */
#ifndef DF_STEPS_OUTCOME_H
#define DF_STEPS_OUTCOME_H

#include "spawner/model/model.h"

/* Merges the members that a progress report and a result share: timeline, source, tool,
 * lockFileSha256, hasChanges, destroysAll, leavesState, planSummary. Unknown members are ignored;
 * class USER for malformed known ones. */
int df_outcome_merge(cJSON *task, const cJSON *report, int64_t now_us,
                     struct df_err *err) DF_MUST_CHECK;

/* Sets status.unrecorded: objects that may be missing from the state (unrecorded.h). Call it before
 * the end: a failure mentions them in its message, a success removes them. NULL changes nothing. */
int df_outcome_unrecorded(cJSON *task, const cJSON *unrecorded, struct df_err *err) DF_MUST_CHECK;

/* Ends the step with the result of its runner. Class USER for a malformed result. */
int df_outcome_result(cJSON *task, const cJSON *result, int64_t now_us,
                      struct df_err *err) DF_MUST_CHECK;

/* Stores the result of an interrupted runner (df_task_was_interrupted()) as status.interrupted; the
 * step does not end yet. A second call changes nothing. Class USER for a malformed result. */
int df_outcome_interrupted(cJSON *task, const cJSON *result, int64_t now_us,
                           struct df_err *err) DF_MUST_CHECK;

/* Ends the step with a failure that no runner reported. */
struct df_outcome_failure {
    int exit_code;       /* -1: unknown */
    enum df_fault fault; /* NONE: the one that belongs to the reason */
    const char *reason, *message;
};
int df_outcome_fail(cJSON *task, const struct df_outcome_failure *f, int64_t now_us,
                    struct df_err *err) DF_MUST_CHECK;

/* Ends the step with a success that no runner reported. */
int df_outcome_succeed(cJSON *task, const char *reason, const char *message, int64_t now_us,
                       struct df_err *err) DF_MUST_CHECK;

#endif
