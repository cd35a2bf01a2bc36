/*
 * variables.h - adds --var and --var-file to the request of a run: first what they say, which needs
 * no module, then the values, for which the module's types count. Thread rule: main thread.
 */
#ifndef DF_CLI_VARIABLES_H
#define DF_CLI_VARIABLES_H

#include "common/hcl/hcl.h"
#include "common/json/json.h"
#include "spawner/cli/args.h"

/* Cuts "name=value" into a name, for the caller to free, and a value within text. what: the
 * option's name, for messages. */
int df_variable_cut(const char *what, const char *text, char **ret_name, const char **ret_value,
                    struct df_err *err) DF_MUST_CHECK;

/* The value of a variable, as the tool's -var takes it: a text, or for types other than string,
 * number and bool an expression. m: NULL if the module cannot be read here; then, and for a
 * variable that it does not declare, a text that begins with [ or { is an expression. *ret: for the
 * caller; NULL: an expression that is no JSON, and so for a file in the tool's own syntax. */
int df_variable_value(const struct df_hcl_module *m, const char *what, const char *name,
                      const char *text, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Adds to a request what the command line says of variables. It is no request before
 * df_variables_settle() has been called. */
int df_variables_read(const struct df_args *args, cJSON *body, struct df_err *err) DF_MUST_CHECK;
/* Between the two: true if a .tfvars file was given. */
bool df_variables_have_file(const cJSON *body);

/* Gives the variables their values; a later option wins, as in the tool. A file with one YAML or
 * JSON object is added to `variables`, as --var is. A .tfvars or .tfvars.json file is added
 * unchanged to secrets.files, which no document contains, and an expression that is no JSON as such
 * a file; earlier variables are moved into a file before it, so that it wins over them. m: NULL if
 * the module cannot be read here. */
int df_variables_settle(const struct df_hcl_module *m, cJSON *body,
                        struct df_err *err) DF_MUST_CHECK;

#endif
