/*
 * engine_step.h - the engine's view of a TaskAction. Thread rule: any thread.
 */
#ifndef DF_STEPS_ENGINE_STEP_H
#define DF_STEPS_ENGINE_STEP_H

#include "spawner/spawner.h"

/* The prefix of status.lockedBy while another TaskAction is ahead of this one in the queue. */
#define DF_QUEUED_BEHIND "taskaction/"

/* Fills *ret, which borrows from both. */
void df_engine_step_of(const struct df_spawner *s, const cJSON *task, struct df_engine_step *ret);

#endif
