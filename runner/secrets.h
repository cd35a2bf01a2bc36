/*
 * secrets.h - collects the values that a step must mask: those that the spawner names, the
 * credentials in the document, and the values of variables that the module declares sensitive.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_SECRETS_H
#define DF_RUNNER_SECRETS_H

#include "common/hcl/hcl.h"
#include "common/json/json.h"
#include "common/redact/redact.h"

/* module: NULL before it is fetched; then every value that it may declare sensitive is masked.
 * more: values from elsewhere than the document; or NULL. */
int df_secrets_collect(const cJSON *step, const struct df_hcl_module *module,
                       const struct df_strs *more, struct df_redact_set **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Class USER, reason SensitiveValue, if a document of the service holds the value of a variable
 * that the module declares sensitive. The message names the variable and the ways out. */
int df_secrets_check(const cJSON *step, const struct df_hcl_module *module,
                     struct df_err *err) DF_MUST_CHECK;

#endif
