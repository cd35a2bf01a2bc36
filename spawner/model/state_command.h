/*
 * state_command.h - what a run with the action state does: one of the tool's own commands on the
 * state, with spec.command as its words. Thread rule: pure functions.
 */
#ifndef DF_STATE_COMMAND_H
#define DF_STATE_COMMAND_H

#include "spawner/model/schema.h"

/* Of spec.command: mv [-dry-run] SRC DST, rm [-dry-run] ADDRESS..., import ADDRESS ID,
 * force-unlock ID. */
df_rule df_rule_state_command;

/* A Run or TaskAction has spec.command if its action is state, and only then. */
void df_state_command_check(const cJSON *doc, const struct df_path *root, struct df_faults *f);

/* What the executor cannot do: class USER. */
int df_state_command_fits(const cJSON *run, const cJSON *executor,
                          struct df_err *err) DF_MUST_CHECK;

/* Does the run take an object into the state? */
bool df_run_imports(const cJSON *run);

#endif
