/*
 * pull.h - `state pull` of the module's backend, as it is set up. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PULL_H
#define DF_RUNNER_PULL_H

#include "runner/context.h"

/* Writes what the command prints into a new file of dirs->secret (or an existing one, which it
 * replaces); nothing, or an empty state, if there is no state. The reason of a failure is that of
 * df_failure_explain(), or StateCommandFailed. */
int df_pull(struct df_context *c, const char *file, struct df_err *err) DF_MUST_CHECK;

#endif
