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

/* Real time from which the tool of a claimed step hears a refusal where the storage cannot take its
 * state: it was told to stop before, and a part of its grace period is over. It writes the state to
 * a file then, which its runner keeps; killed at the end of the period it would write none.
 * INT64_MAX: nobody knows yet. */
int64_t df_task_gives_up_at(const cJSON *task);

/* Adds the phase RetryableFailure to the history. */
int df_task_note_retry(cJSON *task, const char *message, int64_t now_us,
                       struct df_err *err) DF_MUST_CHECK;

/* workflow_next.c: df_task_next() for a workflow. */
struct df_task_verdict
df_workflow_next(const cJSON *task, const struct df_engine_observation *observed, int64_t now_us);

#endif
