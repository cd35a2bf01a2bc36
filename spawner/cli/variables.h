/* variables.h - --var and --var-file as the JSON object of a run's variables. */
#ifndef DF_CLI_VARIABLES_H
#define DF_CLI_VARIABLES_H

#include "common/json/json.h"
#include "spawner/cli/args.h"

/* In the order of the command line; a later one wins. A value that begins with [ or { is JSON; any
 * other one is a string, which the tool converts to what the variable wants. A file holds one YAML
 * or JSON object. */
int df_variables_read(const struct df_args *args, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
