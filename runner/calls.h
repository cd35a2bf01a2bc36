/* calls.h - says in plain words that a module calls another one which is not in the source. Thread
 * rule: one thread. */
#ifndef DF_RUNNER_CALLS_H
#define DF_RUNNER_CALLS_H

#include "runner/context.h"

/* Before `init`, which would find something else at that path, or only name it. Class USER, reason
 * InitFailed. */
int df_calls_check(const struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
