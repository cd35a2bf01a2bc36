/*
 * applied.h - what people write with kubectl: new documents, edits, decisions, cancels and
 * deletions. Each is handled as if an admin had sent it to the REST API. The API server has checked
 * the person's rights; it does not say who it was.
 *
 * The reconcilers call this first. *ret_done: the pass is over; *ret_wake_us as in loop.h. A
 * refusal is written into the status, with its reason or InvalidDocument. A finalizer keeps a
 * deleted document until its pod has gone and its runs have ended.
 */
#ifndef DF_APPLIED_H
#define DF_APPLIED_H

#include "spawner/control/loop.h"

int df_applied_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_applied_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_applied_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;

#endif
