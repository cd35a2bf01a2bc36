/*
 * masks.h - hides the secrets of an executor in the outputs that callers without the role admin
 * get. The values are those that the vault has now. Thread rule: any thread.
 */
#ifndef DF_STEPS_MASKS_H
#define DF_STEPS_MASKS_H

#include "spawner/spawner.h"

/* Masks every value of the secrets that these specs name in the values of outputs ({name: {value,
 * …}}), in every form that the runner masks in a log. specs: of an Executor or a Run's snapshot;
 * ends with NULL. Fails if a secret exists and cannot be fetched; one
 * that does not exist or does not open has no value that is known. On failure the outputs must not
 * be shown. */
int df_mask_outputs(struct df_spawner *s, const cJSON *const *specs, cJSON *outputs,
                    struct df_err *err) DF_MUST_CHECK;

#endif
