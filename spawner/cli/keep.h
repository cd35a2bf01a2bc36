/* keep.h - stores variables in an executor. Thread rule: main thread. */
#ifndef DF_CLI_KEEP_H
#define DF_CLI_KEEP_H

#include "spawner/cli/cli.h"

/* Merges variables into spec.variables of the executor. Class USER if the module declares one of
 * them sensitive; this is checked only if the source is a directory of this machine. *ret_changed:
 * true if the executor was changed. */
int df_executor_keep(struct df_cli *cli, const char *name, const cJSON *variables,
                     bool *ret_changed, struct df_err *err) DF_MUST_CHECK;

#endif
