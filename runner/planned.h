/*
 * planned.h - what a plan file holds besides the plan. It is a zip, unless the module encrypts it.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_PLANNED_H
#define DF_RUNNER_PLANNED_H

#include "runner/context.h"

/* Appends the state that the plan was made of, as it was after the refresh. Fails if it is larger
 * than DF_LIMIT_STATE_COMPARED, or the plan is encrypted. */
int df_planned_state(const struct df_context *c, const char *plan, struct df_buf *ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
