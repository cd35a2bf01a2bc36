/* keep.h - variables and settings that stay with an executor. Thread rule: main thread. */
#ifndef DF_CLI_KEEP_H
#define DF_CLI_KEEP_H

#include "spawner/cli/cli.h"

/* Writes variables over spec.variables of the executor. USER for one that the module declares
 * sensitive: as far as its source lies on this machine. *ret_changed: was anything different? */
int df_executor_keep(struct df_cli *cli, const char *name, const cJSON *variables,
                     bool *ret_changed, struct df_err *err) DF_MUST_CHECK;

#endif
