/*
 * unrecorded.h - what an apply that did not succeed may have created without any state that knows
 * it (promise: nothing that was made is lost silently). It becomes `status.unrecorded` of the
 * TaskAction, docs/objects.md.
 */
#ifndef DF_STEPS_UNRECORDED_H
#define DF_STEPS_UNRECORDED_H

#include "spawner/spawner.h"

/* Reads the step's events, and, when there is something to look for, the executor's managed state
 * and the errored state that is kept of this step. Call it when the step's events and states are as
 * complete as they get, and before a lock that the step left is released: a held lock shows that
 * the tool was cut off. Returns the list, which the caller deletes, or NULL: nothing is missing, or
 * the step is no apply. Whatever fails is said in our own log and hinders nobody. */
cJSON *df_unrecorded_find(struct df_spawner *s, const cJSON *task);

/* Says in the log that there is such a list. */
void df_unrecorded_warn(const char *step, const cJSON *unrecorded);

/* How many objects the list stands for, those that it only counts included; 0 for NULL. */
int64_t df_unrecorded_count(const cJSON *unrecorded);

#endif
