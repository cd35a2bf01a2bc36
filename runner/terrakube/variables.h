/*
 * variables.h - the Terraform variables of a job, as arguments of the tool that mean the same as
 * Terrakube's `--var name=value`: they win over every file of the module, a value for a variable
 * that the module does not declare is an error, and the variable's type decides whether the value
 * is a text or an expression.
 *
 * Values of declared variables stand in two files, the last ones of the command line, so that no
 * secret is in argv and a value may be larger than an argument: texts in one of JSON, expressions
 * in one of HCL. The others are passed as -var: the tool then says its own error. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_VARIABLES_H
#define DF_RUNNER_TERRAKUBE_VARIABLES_H

#include "common/base/strs.h"
#include "common/hcl/hcl.h"
#include "common/json/json.h"

/* variables: as in the payload. Writes the files to dir, which is private, and adds the arguments
 * to `to`. USER, reason VariableInvalid: a value that is no text, or too long for -var. */
int df_terrakube_variables_write(const cJSON *variables, const struct df_hcl_module *module,
                                 const char *dir, struct df_strs *to,
                                 struct df_err *err) DF_MUST_CHECK;

/* Adds the values of variables that the module declares sensitive. The caller wipes `to`. */
int df_terrakube_variables_secrets(const cJSON *variables, const struct df_hcl_module *module,
                                   struct df_strs *to, struct df_err *err) DF_MUST_CHECK;

#endif
