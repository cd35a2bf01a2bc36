/*
 * managed_put.h - writes a whole state into the managed storage. Thread rule: main thread.
 */
#ifndef DF_RUNNER_MANAGED_PUT_H
#define DF_RUNNER_MANAGED_PUT_H

#include "runner/context.h"

/* Stores the file as a new version. state: of type managed, as in the step document. `state push` is
 * not used: it gives a state that is the first at its place a lineage of its own. A spawner that
 * does not answer is tried five times. The reasons are those of df_state_put(). */
int df_managed_put(const struct df_context *c, const cJSON *state, const char *path,
                   struct df_err *err) DF_MUST_CHECK;

#endif
