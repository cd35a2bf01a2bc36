/*
 * applied.h - what people write with kubectl: documents that nobody took in yet, edits, decisions,
 * cancels and deletions. Each is done here as the REST API would do it, asked by an admin: who it
 * was the API server does not tell, and its own rights have decided.
 *
 * The reconcilers ask before they do anything else. *ret_done: the pass is over, *ret_wake_us is as
 * theirs. What is refused is written into the status, with the reason InvalidDocument, or that of
 * the refusal. Deleted documents stay until their pod is gone and their runs have ended: the store
 * holds them by a finalizer.
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
