/*
 * lost_step.h - a step whose TaskAction was deleted and whose finalizer was removed by force: the
 * document is gone, and its processes may live. The run knows their name and uid from status.steps.
 * Thread rule: the worker that has the run's key.
 */
#ifndef DF_CONTROL_LOST_STEP_H
#define DF_CONTROL_LOST_STEP_H

#include "spawner/spawner.h"

/* The step is an entry of the run's status.steps. *ret: does a process of the step live, with any
 * engine? It may be in the pod of an earlier step of the run, so those count, too. Fails as long as
 * an engine cannot tell. */
int df_lost_step_lives(struct df_spawner *s, const cJSON *run, const cJSON *step, bool *ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Asks every engine to end the step, and the pods of earlier steps. Returns at once. */
int df_lost_step_end(struct df_spawner *s, const cJSON *run, const cJSON *step,
                     struct df_err *err) DF_MUST_CHECK;

/* When no process of it lives: keeps the log and the errored state that its engine has, releases
 * its lock on the state, and removes what the engine keeps. Repeatable. *ret_unrecorded: the list
 * of unrecorded resources (unrecorded.h), owned by the caller; NULL: none. */
int df_lost_step_settle(struct df_spawner *s, const cJSON *run, const cJSON *step,
                        cJSON **ret_unrecorded, struct df_err *err) DF_MUST_CHECK;

/* For a run that is final: ends and removes what engines keep of its steps whose TaskAction is
 * gone; their ends are known. *ret_waits: one still lives; call again. */
int df_lost_steps_remove(struct df_spawner *s, const cJSON *run, bool *ret_waits,
                         struct df_err *err) DF_MUST_CHECK;

#endif
