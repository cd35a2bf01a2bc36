/*
 * outputs.h - the outputs of modules whose state dayfly does not store. They are the runner's
 * `output -json`, in one blob for each step and one, the newest, for each executor. Each blob is
 * sealed with the vault's key "outputs" and bound to its step or executor. Thread rule: any thread.
 */
#ifndef DF_STEPS_OUTPUTS_H
#define DF_STEPS_OUTPUTS_H

#include "spawner/spawner.h"

/* uid: of a step or an executor. *ret: as in df_state_outputs(). NOT_FOUND if none are stored. */
int df_outputs_get(struct df_spawner *s, const char *uid, bool show_sensitive, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_outputs_delete(struct df_spawner *s, const char *uid, struct df_err *err) DF_MUST_CHECK;

#endif
