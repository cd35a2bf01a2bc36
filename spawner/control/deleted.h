/*
 * deleted.h - documents that were deleted with kubectl, which does not ask the service first. Our
 * finalizer keeps the document until its pod has gone and its runs have ended. Results as in
 * applied.h. Thread rule: a pass over that document.
 */
#ifndef DF_DELETED_H
#define DF_DELETED_H

#include "spawner/control/loop.h"

/* Ends what the deleted document stands for, and removes the document when nothing of it lives. */
int df_deleted_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_deleted_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_deleted_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;
/* Removes a deleted TaskAction that has ended, with its streams and blobs. */
int df_deleted_let_go(struct df_control *c, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

#endif
