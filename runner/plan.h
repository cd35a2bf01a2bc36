/*
 * plan.h - the stage that plans: init, plan, show, and the bundle for the apply.
 */
#ifndef DF_RUNNER_PLAN_H
#define DF_RUNNER_PLAN_H

#include "runner/context.h"

int df_plan(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
