/*
 * unrecorded.h - finds unrecorded resources: objects that a failed apply may have created and that
 * are missing from the state, so that none of them is lost silently. The list becomes
 * `status.unrecorded` of the TaskAction (docs/objects.md). Thread rule: any thread.
 */
#ifndef DF_STEPS_UNRECORDED_H
#define DF_STEPS_UNRECORDED_H

#include "spawner/spawner.h"

/* Reads the step's events and, if they name created objects, the executor's managed state and the
 * errored state of this step. Call it when events and states are as complete as they will be, and
 * before the step's lock is released: a lock that is still held shows that the tool was killed.
 * *ret: the list, which the caller deletes; or NULL if nothing is missing or the step is not an
 * apply. RETRY: the storage does not answer, so nobody can tell yet. Any other failure is only
 * logged. */
int df_unrecorded_find(struct df_spawner *s, const cJSON *task, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Logs a warning about the list. */
void df_unrecorded_warn(const char *step, const cJSON *unrecorded);

/* The number of missing objects, including those that the list only counts; 0 for NULL. */
int64_t df_unrecorded_count(const cJSON *unrecorded);

#endif
