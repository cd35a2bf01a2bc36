/*
 * touched.h - whether an apply that failed has changed something: exit code 2 instead of 1.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_TOUCHED_H
#define DF_RUNNER_TOUCHED_H

#include "runner/context.h"

/* True if the events of the apply tell of an object that was changed, or whose change was begun and
 * did not come to an end; or if the state has other resources than the plan began with, such as one
 * that was made and is tainted. True as well if a change was begun and the state cannot be read.
 * plan: the plan file, which has the state that it began with; NULL: that is not known. */
bool df_apply_touched(struct df_context *c, const char *plan);

#endif
