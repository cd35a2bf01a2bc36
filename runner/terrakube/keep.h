/*
 * keep.h - after a change of resources: the state as Terrakube's UI shows it and can roll back to,
 * and the outputs. Contract: section 3.8. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_KEEP_H
#define DF_RUNNER_TERRAKUBE_KEEP_H

#include "runner/context.h"

/* Removes an errored.tfstate of the source or of a script: the tool's own is made after this. */
int df_terrakube_remove_errored(const struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* Keeps a state that the tool could store nowhere as the job's raw state, then pushes it. Stores
 * state and history, and hands the outputs to the UI and to the scripts. A stop only ends the
 * repetitions of the push. failed: the tool's command did not succeed. What fails here is a note in
 * the log: the resources are what they are. */
void df_terrakube_keep_state(struct df_context *c, bool failed);

#endif
