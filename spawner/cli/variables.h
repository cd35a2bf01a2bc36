/* variables.h - --var and --var-file as what a run is asked for. */
#ifndef DF_CLI_VARIABLES_H
#define DF_CLI_VARIABLES_H

#include "common/json/json.h"
#include "spawner/cli/args.h"

/* Sets what "name=value" says. A value that begins with [ or { is JSON; any other one is a string,
 * which the tool converts to what the variable wants. what: the option's name, for messages. */
int df_variable_add(cJSON *all, const char *what, const char *text,
                    struct df_err *err) DF_MUST_CHECK;

/* Adds to a run's request what the command line says; a later option wins, as it does for the tool.
 * A file of one YAML or JSON object is `variables`, as --var is. A file that is called .tfvars or
 * .tfvars.json goes as it is into secrets.files, which no document holds; variables that such a
 * file must win over go before it. */
int df_variables_read(const struct df_args *args, cJSON *body, struct df_err *err) DF_MUST_CHECK;

#endif
