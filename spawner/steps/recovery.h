/*
 * recovery.h - stores what a dead runner could not deliver, from the files that its engine kept.
 * Thread rule: the pass over the TaskAction.
 */
#ifndef DF_STEPS_RECOVERY_H
#define DF_STEPS_RECOVERY_H

#include "spawner/spawner.h"

/* Appends the rest of the log and of the events. Best effort: a failure is only logged. */
void df_recover_streams(struct df_spawner *s, struct df_engine *e,
                        const struct df_engine_step *step);

/* The same before the engine's files are removed: RETRY while the storage is away, and the caller
 * keeps them until it is back. */
int df_recover_rest(struct df_spawner *s, struct df_engine *e, const struct df_engine_step *step,
                    struct df_err *err) DF_MUST_CHECK;

/* Stores a state that tofu could not upload as an errored state of the executor. Also succeeds if
 * there is no such state, or if it is stored already. */
int df_recover_state(struct df_spawner *s, struct df_engine *e, const struct df_engine_step *step,
                     const char *executor_uid, struct df_err *err) DF_MUST_CHECK;

#endif
