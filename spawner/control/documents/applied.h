/*
 * applied.h - checks and accepts what people write with kubectl: new documents, edits, decisions,
 * cancels and deletions. The service handles each one as if the person that its stamp names had
 * sent it to the REST API, with the stamp's role (model/stamp.h).
 *
 * The reconcilers call these functions first, with *ret_done false. *ret_done true: this pass has
 * nothing else to do. *ret_wake_us: as in loop.h. A refused document gets a status with the reason
 * InvalidDocument. A finalizer keeps a deleted document until its pod is gone and its runs have
 * ended.
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
