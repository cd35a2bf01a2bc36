/*
 * backend_noted.h - the backend that `init` notes in `.terraform/terraform.tfstate`.
 *
 * A file of the source that sorts after dayfly's override file wins over it: `init` then uses
 * another backend than the step's, and the state would be stored there. Thread rule: one thread.
 */
#ifndef DF_BACKEND_NOTED_H
#define DF_BACKEND_NOTED_H

#include "common/json/json.h"

#define DF_BACKEND_NOTE ".terraform/terraform.tfstate"

/* {"type", "config"} as noted in the module's directory, for the caller to free; NULL: no readable
 * note. Fails only if there is no memory. */
int df_backend_noted_load(const char *module_dir, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* To be called after `init`, with the step document. Class USER, reason BackendInModule, if `init`
 * noted another backend or other settings than the step's. Checks nothing for state.type module. */
int df_backend_noted_check(const cJSON *step, const char *module_dir,
                           struct df_err *err) DF_MUST_CHECK;

#endif
