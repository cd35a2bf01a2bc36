/*
 * apply.h - the stages of terraformApply and terraformDestroy. Contract: sections 3.7 and 3.8.
 */
#ifndef DF_RUNNER_TERRAKUBE_APPLY_H
#define DF_RUNNER_TERRAKUBE_APPLY_H

#include "runner/context.h"

/* What changes resources without a plan that the policies of the job were evaluated for is refused:
 * DENIED, reason PolicyFailed. After df_terrakube_begin(). */
int df_terrakube_admit(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* Applies the plan that the job names; a job without one is planned and applied at once. */
int df_terrakube_apply(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

int df_terrakube_destroy(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
