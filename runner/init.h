/*
 * init.h - `tofu init` of the module. Thread rule: main thread.
 */
#ifndef DF_RUNNER_INIT_H
#define DF_RUNNER_INIT_H

#include "runner/context.h"

/* lock_readonly: .terraform.lock.hcl must not change. Reason BackendInModule if
 * `init` used another backend than the step's; else InitFailed, or a reason that its output shows
 * (tofu/failure.h). */
int df_init(struct df_context *c, bool lock_readonly, struct df_err *err) DF_MUST_CHECK;

#endif
