/*
 * sensitive.h - declares the variables that get secrets sensitive, so that the tool itself hides
 * them in plans, states and outputs, and refuses an output that would show one.
 *
 * Thread rule: one thread.
 */
#ifndef DF_SENSITIVE_H
#define DF_SENSITIVE_H

#include "common/hcl/hcl.h"
#include "common/json/json.h"

/* Writes the override file `zzzz_dayfly_sensitive_override.tf.json` into the module's directory, if
 * a variable of the module gets its value from a secret of the step (TF_VAR_ in secretEnvironment,
 * or sealed.variables) and does not say itself whether it is `sensitive`. module: scanned from that
 * directory. An override file keeps all other arguments of the variable. */
int df_sensitive_write(const cJSON *step, const struct df_hcl_module *module,
                       const char *module_dir, struct df_err *err) DF_MUST_CHECK;

#endif
