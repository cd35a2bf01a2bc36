/*
 * plan.h - the stage of terraformPlan and terraformPlanDestroy. Contract: section 3.7.
 */
#ifndef DF_RUNNER_TERRAKUBE_PLAN_H
#define DF_RUNNER_TERRAKUBE_PLAN_H

#include "runner/context.h"

/* Plans, lets policies and scripts look at the plan, and stores it for the apply. */
int df_terrakube_plan(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
