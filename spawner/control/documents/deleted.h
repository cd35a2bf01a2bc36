/*
 * deleted.h - handles documents that were deleted with kubectl, which does not ask the service
 * first. The service's finalizer keeps such a document until its pod is gone and its runs have
 * ended. Results as in applied.h. Thread rule: a pass over that document.
 */
#ifndef DF_DELETED_H
#define DF_DELETED_H

#include "spawner/control/loop.h"

/* A document that was never accepted is removed at once. Otherwise: the deletion of an executor is
 * requested; a run is canceled, and removed when it has ended; a TaskAction is left to its own
 * pass, which ends it and then calls df_deleted_remove(). */
int df_deleted_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_deleted_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_deleted_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;
/* Removes the revision. The audit trail gets its entry before, if it was the service's. */
int df_deleted_revision(struct df_control *c, const cJSON *revision,
                        struct df_err *err) DF_MUST_CHECK;
/* Removes an executor that is marked as deleted (df_purge_executor()). If the mark came with
 * kubectl, the audit trail gets its entry before. */
int df_deleted_remove_executor(struct df_control *c, const cJSON *executor,
                               struct df_err *err) DF_MUST_CHECK;
/* Removes a deleted TaskAction that has ended, together with its streams and blobs. The audit trail
 * gets its entry before. */
int df_deleted_remove(struct df_control *c, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

#endif
