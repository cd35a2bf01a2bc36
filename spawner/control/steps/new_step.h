/*
 * new_step.h - a run makes its next step. A step whose pod can be made at once is stored as one
 * that has begun, with its slot: that it was queued before is an entry of its history. Any other is
 * stored as queued, and its own pass does the rest. Thread rule: the worker that has the run's key.
 */
#ifndef DF_CONTROL_NEW_STEP_H
#define DF_CONTROL_NEW_STEP_H

#include "spawner/control/loop.h"

/* Stores the step, which it may change. before: the step before it; or NULL. *ret: what is stored;
 * the caller deletes it. Errors: those of df_task_create(). */
int df_new_step_create(struct df_control *c, cJSON *task, const cJSON *before, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

#endif
