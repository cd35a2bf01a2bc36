/*
 * apply.h - the stage that applies exactly the approved plan.
 */
#ifndef DF_RUNNER_APPLY_H
#define DF_RUNNER_APPLY_H

#include "runner/context.h"

/* Reasons PlanOfOtherRun, SourceChanged, ToolVersionChanged, LockFileChanged, PlanCorrupt: the plan
 * is not for this step. */
int df_apply(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
