/*
 * pull.h - what the module's backend, as it is set up, says of the state. A dry run, which reads
 * without a lock, reads again what was being written (torn.h). Thread rule: main thread.
 */
#ifndef DF_RUNNER_PULL_H
#define DF_RUNNER_PULL_H

#include "runner/context.h"

/* Writes what `state pull` prints into a new file of dirs->secret (or an existing one, which it
 * replaces); nothing, or an empty state, if there is no state. The reason of a failure is that of
 * df_failure_explain(), or StateCommandFailed. */
int df_pull(struct df_context *c, const char *file, struct df_err *err) DF_MUST_CHECK;

/* The same with what `output -json` prints: {} without a state. The fallback is RunnerFailed. */
int df_pull_outputs(struct df_context *c, const char *file, struct df_err *err) DF_MUST_CHECK;

#endif
