/*
 * plan_changes.h - what a plan changes, in few words, from the tool's own JSON: the service decides
 * with it whether the plan needs a look of a person (spawner/model/automatic.h). Thread rule: any
 * thread.
 */
#ifndef DF_RUNNER_PLAN_CHANGES_H
#define DF_RUNNER_PLAN_CHANGES_H

#include "runner/context.h"

/* Adds planChanges to the result. json: the output of `show -json`. Without
 * them the plan needs a look: of a file that cannot be read, or is larger than
 * DF_LIMIT_PLAN_READ. */
int df_plan_changes_add(struct df_context *c, int json, struct df_err *err) DF_MUST_CHECK;

/* *ret: {kinds, types} for the JSON text. The kinds are create, update, delete, replace, forget,
 * import, move, drift (nothing but what others have changed) and other: whatever this version does
 * not know. The types are those of the resources of all these kinds. USER if it cannot be
 * parsed. */
int df_plan_changes_read(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
