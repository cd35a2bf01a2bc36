/*
 * vanished_run.h - a Run that was deleted and whose finalizer was removed by force. Its TaskActions
 * are left, and its executor may have it as its active run: the steps are canceled and removed, and
 * then the executor is released. Thread rule: any worker.
 */
#ifndef DF_CONTROL_VANISHED_RUN_H
#define DF_CONTROL_VANISHED_RUN_H

#include "spawner/control/loop.h"

/* The pass over a Run that does not exist: cancels its TaskActions, removes those that are over,
 * and wakes the executor's pass. A Run that was removed properly has left nothing. */
int df_vanished_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                    struct df_err *err) DF_MUST_CHECK;

/* Does the executor wait for steps of a Run that does not exist? No other run may start then. */
int df_vanished_blocks(struct df_control *c, const cJSON *executor, bool *ret,
                       struct df_err *err) DF_MUST_CHECK;

/* The pass over the executor: when nothing is left of its active run, it has none any more, and the
 * next run is woken. */
int df_vanished_settle(struct df_control *c, const cJSON *executor,
                       struct df_err *err) DF_MUST_CHECK;

#endif
