/*
 * waits.h - tells that a run or step waits: what is done for it fails through nobody's fault, and
 * whoever asked for it tries again. After DF_WAIT_TOLD_MS the document says so (waiting.h), until
 * the same thing succeeds or the document is final. The API reports each request of a runner here,
 * the control loop each pass; store/memory.h has what fails. Thread rule: any thread.
 */
#ifndef DF_STEPS_WAITS_H
#define DF_STEPS_WAITS_H

#include "spawner/spawner.h"

/* began_us: real time when the attempt began. A refusal, and an attempt that only met another
 * writer, are no wait. Best effort. */
void df_wait_failed(struct df_spawner *s, const struct df_wait_case *c, int64_t began_us,
                    const struct df_err *why);
void df_wait_passed(struct df_spawner *s, const struct df_wait_case *c);

/* A result that blames the state, while the step waits for the storage, or the storage fails: *ret
 * is a copy that names the storage, which the caller deletes; else NULL. */
int df_wait_explain(struct df_spawner *s, const cJSON *task, const cJSON *result, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

#endif
