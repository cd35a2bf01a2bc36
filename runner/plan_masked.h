/*
 * plan_masked.h - the plan for programs that only judge it: without what is sensitive in it.
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_PLAN_MASKED_H
#define DF_RUNNER_PLAN_MASKED_H

#include "common/json/json.h"
#include "common/redact/redact.h"

/* Replaces in the JSON of a plan (`show -json`) what its own marks call sensitive, the values of
 * sensitive variables, every other place that has one of these values (of eight bytes or more), and
 * what the set masks. What is null stays so. On failure the tree must not be shown. */
int df_plan_mask(cJSON *plan, const struct df_redact_set *set, struct df_err *err) DF_MUST_CHECK;

#endif
