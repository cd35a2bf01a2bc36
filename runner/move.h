/*
 * move.h - the command `migrate`: copies the state to the storage in the document's `moveTo`.
 * The old place is only read. The executor names it until the spawner has this step's success.
 */
#ifndef DF_RUNNER_MOVE_H
#define DF_RUNNER_MOVE_H

#include "runner/context.h"

/* Reasons: StateLocked, StateExists (the new place has another state), StateMoveFailed (the copy
 * differs, or somebody wrote the old place meanwhile), and those of df_failure_explain(). The
 * result has `state`: lineage and serial at the old place. */
int df_move(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
