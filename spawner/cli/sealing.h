/*
 * sealing.h - variables of a run whose values no document may hold.
 *
 * They are moved from the request's `variables` into its `secrets`: those that the module declares
 * sensitive, and all where the module cannot be read from here (the runner then masks those that it
 * finds declared sensitive); and those of --secret-var, which are always masked.
 */
#ifndef DF_CLI_SEALING_H
#define DF_CLI_SEALING_H

#include "spawner/cli/cli.h"

/* body: of a request for a run of this executor, which may be NULL (not known). */
int df_sealing_add(struct df_cli *cli, const cJSON *executor, cJSON *body,
                   struct df_err *err) DF_MUST_CHECK;

#endif
