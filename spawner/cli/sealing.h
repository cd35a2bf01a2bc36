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

/* body: of the request for a run of this executor. Gives the variables that df_variables_read()
 * found their values, by the types that the module declares, if it can be read here. USER, before
 * anything is asked for: --var or --secret-var gives a variable that this module does not declare,
 * or a value is none of its type. */
int df_sealing_settle(const struct df_cli *cli, const cJSON *executor, cJSON *body,
                      struct df_err *err) DF_MUST_CHECK;

/* After df_sealing_settle(): seals. */
int df_sealing_add(struct df_cli *cli, const cJSON *executor, cJSON *body,
                   struct df_err *err) DF_MUST_CHECK;

#endif
