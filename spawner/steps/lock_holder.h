/*
 * lock_holder.h - whose lock a step met: a runner that was killed together with its tofu leaves its
 * lock. If the lock is not managed, the next step is told which run it was; if it is, the next step
 * gets it. Thread rule: any thread.
 */
#ifndef DF_STEPS_LOCK_HOLDER_H
#define DF_STEPS_LOCK_HOLDER_H

#include "spawner/spawner.h"

/* *ret: a copy of the step's result whose message names first the earlier step of the same executor
 * that took the lock; NULL if the result names no lock, or if no step of ours took it. The caller
 * deletes. The lock's time must be within the life of that step, and its host the step's. */
int df_lock_holder_explain(struct df_spawner *s, const cJSON *task, const cJSON *result,
                           cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The managed lock with this ID is held by a step that has ended, of which no process is left:
 * releases it, and *ret_released is true. Its own pass would do so later, if the storage was away
 * when it ended. */
int df_lock_holder_release(struct df_spawner *s, const char *executor_uid, const char *lock_id,
                           bool *ret_released, struct df_err *err) DF_MUST_CHECK;

#endif
