/*
 * outputs.h - the outputs of a module, with the secrets of the step masked as in its log.
 *
 * A failure is only a note in the log: the step has done its work.
 */
#ifndef DF_RUNNER_OUTPUTS_H
#define DF_RUNNER_OUTPUTS_H

#include "runner/context.h"

/* Uploads a file like the output of `output -json`, which it changes, as the artifact "outputs",
 * with a member "shown" for a value that has a secret, unless it is sensitive as a whole. */
int df_outputs_put(struct df_context *c, const char *path, struct df_err *err) DF_MUST_CHECK;

/* The same with the outputs of the tool. Does nothing for managed state, whose
 * outputs the spawner reads itself. For a step that ends at another place than its outputs are
 * at. */
void df_outputs_keep(struct df_context *c);

/* To be called at the end of each step, when its result cannot be lost any more: it may wait for
 * the spawner until the step's deadline. If has_outputs, the same as df_outputs_keep(). Managed
 * state: masks those outputs that were not masked yet (artifact "shown"), whoever wrote them; until
 * then the spawner shows them to nobody but admins. Nothing if the tool did not run. */
void df_outputs_deliver(struct df_context *c);

#endif
