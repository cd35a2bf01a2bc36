/*
 * errored.h - a state that a step could not store: kept when the step hands it over, given to a
 * step with the command push-errored, removed when that step has stored it. The status of the
 * executor names those that are kept (model/errored_states.h). Thread rule: any thread.
 */
#ifndef DF_STEPS_ERRORED_H
#define DF_STEPS_ERRORED_H

#include "spawner/spawner.h"

/* Makes the executor's status name the errored states that are kept now: call it after each change
 * of them. ret: the executor as it is then; or NULL. Success, and *ret stays as it was, if there is
 * no such executor. */
int df_errored_note(struct df_spawner *s, const char *executor, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Removes it, if it is kept: nobody needs it. executor: with its uid. */
int df_errored_discard(struct df_spawner *s, const cJSON *executor, const char *step,
                       struct df_err *err) DF_MUST_CHECK;

/* path: a complete file in df_blob_tmp_dir(); removed on success. */
int df_step_put_errored_state(struct df_spawner *s, const char *uid, const char *token,
                              const char *path, struct df_err *err) DF_MUST_CHECK;

/* CONFLICT, reason StateRefused, if a later step has changed the state since the step with this uid
 * left an errored one: serials do not tell, a state that was never stored may have the higher one.
 * A step that was removed meanwhile is not compared. */
int df_errored_state_check(struct df_spawner *s, const char *step,
                           struct df_err *err) DF_MUST_CHECK;

/* The state that this step's command push-errored names, as an unnamed file that the caller closes.
 * NOT_FOUND for another command. StateRefused as above. */
int df_step_get_errored_state(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                              int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;

/* Removes the errored state that this ended step has pushed, if it did. A failure is only
 * logged. */
void df_step_drop_errored_state(struct df_spawner *s, const cJSON *task);

#endif
