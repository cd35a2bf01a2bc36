/*
 * plan_masked.h - the plan for programs that only judge it: without what is sensitive in it.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_PLAN_MASKED_H
#define DF_RUNNER_PLAN_MASKED_H

#include "common/json/json.h"
#include "common/redact/redact.h"

/* Puts "(sensitive)" in the JSON of a plan (`show -json`) instead of what its own marks call
 * sensitive, of the values of sensitive variables, and of every other text or number in a value
 * that has one of these (of eight bytes or more) or what the set masks, also in its middle. What is
 * null stays so, and so do the names of members, addresses, types and actions. On failure the tree
 * must not be shown. */
int df_plan_mask(cJSON *plan, const struct df_redact_set *set, struct df_err *err) DF_MUST_CHECK;

#endif
