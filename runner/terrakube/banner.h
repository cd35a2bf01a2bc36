/*
 * banner.h - the lines with which Terrakube's executor divides the log of a step. Contract: point
 * 21 of the recordings. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_BANNER_H
#define DF_RUNNER_TERRAKUBE_BANNER_H

#include "runner/context.h"

/* "Initializing Terrakube Job ...", with the version that runs, up to "Running Tofu Init: ". */
int df_terrakube_banner_init(struct df_context *c, struct df_err *err) DF_MUST_CHECK;
/* "Running Tofu PLAN" between stars; what: "PLAN", "APPLY", "DESTROY". */
int df_terrakube_banner_run(struct df_context *c, const char *what,
                            struct df_err *err) DF_MUST_CHECK;

#endif
