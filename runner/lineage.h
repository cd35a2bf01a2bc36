/*
 * lineage.h - which state a step finds where dayfly does not keep it itself. A lineage belongs to
 * one executor, however its place is spelled; the spawner compares
 * (spawner/control/runs/lineage.h). Nothing here does anything for a managed state. Thread rule:
 * main thread.
 */
#ifndef DF_RUNNER_LINEAGE_H
#define DF_RUNNER_LINEAGE_H

#include "runner/context.h"

/* Reads the state and puts its lineage and serial into the result's `state`, if there is one.
 * Reasons as df_pull(). */
int df_lineage_note(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* The same after an apply or a command, for a state that was not there before. A failure is only a
 * line in the log: what was done is done, and the next plan reads the state. */
void df_lineage_note_new(struct df_context *c);

/* Before a command on the state: compares the lineage that was found (NULL or "": none) with what
 * the step document says of the executor's own and of those of others. CONFLICT StateRefused,
 * StateBelongsToAnother. */
int df_lineage_compare(const struct df_context *c, const char *found,
                       struct df_err *err) DF_MUST_CHECK;
/* df_lineage_note() and that. */
int df_lineage_check(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
