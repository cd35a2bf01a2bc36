/*
 * policies.h - programs of the operator judge a plan before it is stored.
 *
 * Each gets the plan's JSON, masked (plan_masked.h), on its standard input, and prints one JSON
 * value. It has no network, limits of its own on time and memory, and none of the step's
 * environment and secrets; on the engine local it also has a wall of its own
 * (df_isolation_wall_of_program()). Whatever else it does is a failure of the policy: it fails
 * closed. docs/policies.md has the answers. Thread rule: main thread.
 */
#ifndef DF_RUNNER_POLICIES_H
#define DF_RUNNER_POLICIES_H

#include "runner/context.h"

/* Does the step document name any? */
bool df_plan_policies_any(const struct df_context *c);

/* Evaluates all of them and adds their results to the step's. json: what `show -json` has
 * written. Reason PolicyFailed if a hard one has not passed. */
int df_plan_policies_check(struct df_context *c, int json, struct df_err *err) DF_MUST_CHECK;

#endif
