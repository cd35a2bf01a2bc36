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

#define DF_BY_KUBERNETES "kubernetes" /* who asked */

int df_applied_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_applied_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_applied_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;

/* May an executor be run: is it taken in, and not refused? RETRY NotTakenIn, CONFLICT WrongState.
 */
int df_applied_check(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* Was it refused? Then it is there for people to mend or remove, and counts for nothing else. */
bool df_applied_is_refused(const cJSON *doc);

/* ---- deleted.c ---- */

/* Somebody deleted it: brings it to an end, and removes it when nothing of it lives. */
int df_deleted_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;
int df_deleted_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err) DF_MUST_CHECK;
int df_deleted_task(struct df_control *c, const cJSON *task, bool *ret_done,
                    struct df_err *err) DF_MUST_CHECK;
/* Removes an ended, deleted TaskAction that nothing is left of. */
int df_deleted_let_go(struct df_control *c, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* An entry of the audit trail; a failure is logged. */
void df_applied_trail(struct df_control *c, const char *action, enum df_kind kind, const char *name,
                      const char *outcome, const char *detail);

#endif
