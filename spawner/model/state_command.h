/*
 * state_command.h - runs with the action state: they execute one of the tool's own commands on the
 * state; spec.command has its arguments. Thread rule: pure functions.
 */
#ifndef DF_STATE_COMMAND_H
#define DF_STATE_COMMAND_H

#include "spawner/model/schema.h"

/* The rule of spec.command: mv [-dry-run] SRC DST, rm [-dry-run] ADDRESS..., import ADDRESS ID,
 * force-unlock ID, push-errored STEP (the uid of the step that left the state), migrate, history,
 * rollback VERSION (as the bucket names it). */
df_rule df_rule_state_command;

/* A Run or TaskAction has spec.command if its action is state, and only then; and spec.moveTo if
 * the command is migrate. */
void df_state_command_check(const cJSON *doc, const struct df_path *root, struct df_faults *f);

/* Fails with class USER if the executor's storage does not support the command (CONFLICT
 * StateElsewhere if it has no versions that could be read), and as df_move_check() and
 * df_state_rollback_check(). */
int df_state_command_fits(const cJSON *run, const cJSON *executor,
                          struct df_err *err) DF_MUST_CHECK;

/* May an older state be put back? CONFLICT WrongState if the executor is destroyed: the state would
 * list resources that are gone, and the tool would take them for existing. */
int df_state_rollback_check(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#define DF_COMMAND_HISTORY "history"
#define DF_COMMAND_ROLLBACK "rollback"
#define DF_COMMAND_PUSH_ERRORED "push-errored"
/* The step whose errored state the command of this Run or TaskAction pushes; NULL: it is another
 * command, or none. Borrowed. */
const char *df_state_command_pushes(const cJSON *doc);

/* May the command of this Run go before an errored state is stored (errored_states.h)? It reads, it
 * brings what is missing into the state, or it takes away what keeps the state from being stored.
 * False for a run without a command. */
bool df_state_command_mends(const cJSON *run);

/* Is the command `import`? */
bool df_run_imports(const cJSON *run);
/* Is the command `rollback`? */
bool df_run_rolls_back(const cJSON *run);
/* Is the command `migrate`? */
bool df_run_moves(const cJSON *run);

#endif
