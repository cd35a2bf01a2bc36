/*
 * errored.h - a state that a step could not store: kept when the step hands it over, given to a
 * step with the command push-errored, removed when that step has stored it. Thread rule: any
 * thread.
 */
#ifndef DF_STEPS_ERRORED_H
#define DF_STEPS_ERRORED_H

#include "spawner/spawner.h"

/* path: a complete file in df_blob_tmp_dir(); removed on success. */
int df_step_put_errored_state(struct df_spawner *s, const char *uid, const char *token,
                              const char *path, struct df_err *err) DF_MUST_CHECK;

/* CONFLICT, reason StateRefused, if a later step has changed the state since the step with this uid
 * left an errored one: serials do not tell, a state that was never stored may have the higher one. A
 * step that was removed meanwhile is not compared. */
int df_errored_state_check(struct df_spawner *s, const char *step,
                           struct df_err *err) DF_MUST_CHECK;

/* The state that this step's command push-errored names, as an unnamed file that the caller closes.
 * NOT_FOUND for another command. StateRefused as above. */
int df_step_get_errored_state(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                              int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;

/* Removes the errored state that this ended step has pushed, if it did. A failure is only logged. */
void df_step_drop_errored_state(struct df_spawner *s, const cJSON *task);

#endif
