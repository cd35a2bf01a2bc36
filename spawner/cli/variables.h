/* variables.h - adds --var and --var-file to the request of a run. Thread rule: main thread. */
#ifndef DF_CLI_VARIABLES_H
#define DF_CLI_VARIABLES_H

#include "common/json/json.h"
#include "spawner/cli/args.h"

/* Sets a variable from "name=value". A value that begins with [ or { is JSON; any other value is a
 * string, which the tool converts to the variable's type. what: the option's name, for messages. */
int df_variable_add(cJSON *all, const char *what, const char *text,
                    struct df_err *err) DF_MUST_CHECK;

/* Adds the variables of the command line to a run's request; a later option wins, as in the tool. A
 * file with one YAML or JSON object is added to `variables`, as --var is. A .tfvars or .tfvars.json
 * file is added unchanged to secrets.files, which no document contains; earlier variables are moved
 * into a file before it, so that it wins over them. */
int df_variables_read(const struct df_args *args, cJSON *body, struct df_err *err) DF_MUST_CHECK;

#endif
