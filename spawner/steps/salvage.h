/*
 * salvage.h - what a runner that is gone could not hand over, taken out of what its engine kept.
 */
#ifndef DF_STEPS_SALVAGE_H
#define DF_STEPS_SALVAGE_H

#include "spawner/spawner.h"

/* Adds the rest of the log and the events that the runner did not get rid of. Best effort: what
 * fails is said in our own log. */
void df_salvage_streams(struct df_spawner *s, struct df_engine *e,
                        const struct df_engine_step *step);

/* Keeps a state that tofu could not store beside the executor's state. None, and one that is kept
 * already, is success. */
int df_salvage_state(struct df_spawner *s, struct df_engine *e, const struct df_engine_step *step,
                     const char *executor_uid, struct df_err *err) DF_MUST_CHECK;

#endif
