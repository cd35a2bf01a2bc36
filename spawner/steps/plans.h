/*
 * plans.h - the plan that a plan step stores for its apply step: one blob, sealed with the vault's
 * key "plan" and bound to its run, its step and its digest. Thread rule: any thread.
 */
#ifndef DF_STEPS_PLANS_H
#define DF_STEPS_PLANS_H

#include "spawner/spawner.h"

/* Deletes the plan of a plan step. Absent is success. */
int df_plan_delete(struct df_spawner *s, const char *task_uid, struct df_err *err) DF_MUST_CHECK;

/* The same at the end of a run, when nobody needs the plan any more. While a backup is made it
 * stays, and goes with the next sweep (requests/retention.h). */
int df_plan_discard(struct df_spawner *s, const char *task_uid, struct df_err *err) DF_MUST_CHECK;

#endif
