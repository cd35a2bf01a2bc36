/*
 * history.h - commands on a state in a versioned bucket: `history` writes the versions that the
 * bucket keeps to the log, `rollback` puts the content of one of them back.
 *
 * The bucket is read with the step's credentials (kept.h); everything that is written, the tool
 * writes, under its lock. Thread rule: main thread.
 */
#ifndef DF_RUNNER_HISTORY_H
#define DF_RUNNER_HISTORY_H

#include "runner/context.h"

/* Reason VersionsUnavailable if the bucket keeps no versions, or they cannot be read; else
 * StateUnavailable. */
int df_history(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* version: the bucket's id of it. The state gets a higher serial than it has. Reasons besides those
 * above and of the tool: NoSuchVersion; StateRefused for a version with another lineage, and where
 * there is no state now. */
int df_rollback(struct df_context *c, const char *version, struct df_err *err) DF_MUST_CHECK;

#endif
