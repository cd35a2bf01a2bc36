/*
 * begin.h - the stages that every step of Terrakube begins with. Contract: sections 3.1 to 3.3 and
 * the common prefix of 3.7. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_BEGIN_H
#define DF_RUNNER_TERRAKUBE_BEGIN_H

#include "runner/context.h"

/* Fetches the source, and tells the API that the step runs. */
int df_terrakube_begin(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* Tool, backend, environment and variables; the scripts before `init`, `init`, and those after
 * it. */
int df_terrakube_ready(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* The stage of customScripts and of onReject: all commands, in the root of the source. */
int df_terrakube_run_scripts(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* The last lines of the log, from c->outcome. is_known: the step succeeded, or the tool has said
 * why it failed. */
void df_terrakube_note_end(const struct df_context *c, bool is_known);

#endif
