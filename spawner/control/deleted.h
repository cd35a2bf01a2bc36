/*
 * deleted.h - what somebody deleted with kubectl, which asks nobody. The document stays, held by
 * our finalizer, until its pod is gone and its runs have ended. Results as in applied.h. Thread
 * rule: a pass over that document.
 */
#ifndef DF_DELETED_H
#define DF_DELETED_H

#include "spawner/control/loop.h"

/* Somebody deleted it: brings it to an end, and removes it when nothing of it lives. */
int df_deleted_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_deleted_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_deleted_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;
/* Removes an ended, deleted TaskAction that nothing is left of. */
int df_deleted_let_go(struct df_control *c, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

#endif
