/*
 * managed.h - reads and writes a whole state in the managed storage. Thread rule: main thread.
 */
#ifndef DF_RUNNER_MANAGED_H
#define DF_RUNNER_MANAGED_H

#include "runner/context.h"

/* state: of type managed, as in the step document. A spawner that does not answer is asked
 * again. */

/* *ret, which is empty before: the latest version as the tool stored it; nothing if there is
 * none. */
int df_managed_get(const struct df_context *c, const cJSON *state, struct df_buf *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Stores the file as a new version. `state push` is not used: it gives a state that is the first at
 * its place a lineage of its own. The reasons are those of df_state_put(). */
int df_managed_put(const struct df_context *c, const cJSON *state, const char *path,
                   struct df_err *err) DF_MUST_CHECK;

#endif
