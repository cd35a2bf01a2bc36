/*
 * engine_step.h - the engine's view of a TaskAction. Thread rule: any thread.
 */
#ifndef DF_STEPS_ENGINE_STEP_H
#define DF_STEPS_ENGINE_STEP_H

#include "spawner/identity/claim.h"
#include "spawner/spawner.h"

/* The prefix of status.lockedBy while another TaskAction is ahead of this one in the queue. */
#define DF_QUEUED_BEHIND "taskaction/"

/* Fills *ret, which borrows from both. */
void df_engine_step_of(const struct df_spawner *s, const cJSON *task, struct df_engine_step *ret);

/* Did the engine make this pod for the step, or for the runner that waits? Its token proves
 * namespace, account and pod, and anybody else who may create pods there can get one for the same
 * audience. Errors of the engine's check_pod(). */
int df_engine_step_check_pod(struct df_spawner *s, const char *engine,
                             const struct df_engine_step *step, const struct df_claim_pod *claimant,
                             struct df_err *err) DF_MUST_CHECK;

#endif
