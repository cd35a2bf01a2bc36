/*
 * run_message.h - status.message of a run that has not ended: what it waits for, for people. Thread
 * rule: the pass over the run; the run is changed in memory.
 */
#ifndef DF_CONTROL_RUN_MESSAGE_H
#define DF_CONTROL_RUN_MESSAGE_H

#include "spawner/model/run.h"

/* Of a run that has a step. view: of this run. */
int df_run_message_step(const struct df_run_view *view, cJSON *run,
                        struct df_err *err) DF_MUST_CHECK;
/* Of one that takes no turn, after that: if there is nothing to say, what its plan does not
 * know. */
int df_run_message_beside(cJSON *run, const cJSON *beside, struct df_err *err) DF_MUST_CHECK;
/* Of a run without steps. is_first: no earlier run of the executor is in its way. */
int df_run_message_turn(cJSON *run, bool is_first, struct df_err *err) DF_MUST_CHECK;

#endif
