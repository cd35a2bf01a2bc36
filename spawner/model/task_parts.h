/*
 * task_parts.h - shared by the decisions about steps; for spawner/model only. Thread rule: pure
 * functions.
 */
#ifndef DF_TASK_PARTS_H
#define DF_TASK_PARTS_H

#include "spawner/model/model.h"

/* The time at path in object, or fallback. */
int64_t df_task_time(const cJSON *object, const char *path, int64_t fallback);
/* The time of this entry of the task's timeline, or fallback. */
int64_t df_task_timeline(const cJSON *task, const char *name, int64_t fallback);

/* When it was canceled or its document deleted (df_task_is_canceled()), or fallback. */
int64_t df_task_canceled_at(const cJSON *task, int64_t fallback);

/* Adds the phase RetryableFailure to the history. */
int df_task_note_retry(cJSON *task, const char *message, int64_t now_us,
                       struct df_err *err) DF_MUST_CHECK;

/* workflow_next.c: df_task_next() for a workflow. */
struct df_task_verdict
df_workflow_next(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us);

#endif
