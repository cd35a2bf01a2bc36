/*
 * sealing.h - makes variables of a run sealed values, which no document may contain.
 *
 * It moves variables from the request's `variables` into its `secrets`: those that the module
 * declares sensitive, or all of them if the module cannot be read here (the runner then masks those
 * that are declared sensitive). It also adds those of --secret-var, which are always masked. Thread
 * rule: main thread.
 */
#ifndef DF_CLI_SEALING_H
#define DF_CLI_SEALING_H

#include "spawner/cli/cli.h"

/* body: of the request for a run of this executor; executor: NULL if it is not known. USER, before
 * anything is asked for: --var or --secret-var gives a variable that the module, if it can be read
 * here, does not declare. */
int df_sealing_add(struct df_cli *cli, const cJSON *executor, cJSON *body,
                   struct df_err *err) DF_MUST_CHECK;

#endif
