/*
 * moved.h - the last check before an executor names its new storage. Thread rule: any thread.
 */
#ifndef DF_CONTROL_MOVED_H
#define DF_CONTROL_MOVED_H

#include "spawner/spawner.h"

/* run: its step has moved the state of executor; step is that TaskAction. If dayfly stores the
 * state at the old place, nobody may have written or locked it since the step copied it: otherwise
 * CONFLICT, with a reason for the run. */
int df_moved_check(struct df_spawner *s, const cJSON *run, const cJSON *executor, const cJSON *step,
                   struct df_err *err) DF_MUST_CHECK;

#endif
