/*
 * state_command.h - the stage that runs one of the tool's own commands on the state.
 */
#ifndef DF_RUNNER_STATE_COMMAND_H
#define DF_RUNNER_STATE_COMMAND_H

#include "runner/context.h"

/* Runs the document's `command`. */
int df_state_command(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
