/*
 * secrets.h - collects the values that a step must mask: those that the spawner names, the
 * credentials in the document, and the values of variables that the module declares sensitive.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_SECRETS_H
#define DF_RUNNER_SECRETS_H

#include "common/hcl/hcl.h"
#include "common/json/json.h"
#include "runner/report/masks.h"

/* Adds the values of the document to values, which the caller wipes. module: NULL before it is
 * fetched; then every value that it may declare sensitive is added. */
int df_secrets_collect(const cJSON *step, const struct df_hcl_module *module,
                       struct df_strs *values, struct df_err *err) DF_MUST_CHECK;

/* Adds those values that the module's code was given, without the credentials of the step
 * itself. */
int df_secrets_given(const cJSON *step, struct df_strs *values, struct df_err *err) DF_MUST_CHECK;

/* What the step masks until its module is known, and its identity tokens. Reason InvalidStep if a
 * token cannot be read. */
int df_secrets_masks(const cJSON *step, struct df_masks **ret, struct df_err *err) DF_MUST_CHECK;

/* Class USER, reason SensitiveValue, if a document of the service holds the value of a variable
 * that the module declares sensitive. The message names the variable and the ways out. */
int df_secrets_check(const cJSON *step, const struct df_hcl_module *module,
                     struct df_err *err) DF_MUST_CHECK;

#endif
