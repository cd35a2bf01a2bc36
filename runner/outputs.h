/*
 * outputs.h - stores a module's outputs with the run if dayfly does not store its state.
 */
#ifndef DF_RUNNER_OUTPUTS_H
#define DF_RUNNER_OUTPUTS_H

#include "runner/context.h"

/* Uploads the output of `output -json` as the artifact "outputs". Does nothing for managed
 * state, whose outputs the spawner reads itself. A failure is only a note in the log: the step
 * succeeded. */
void df_outputs_keep(struct df_context *c);

#endif
