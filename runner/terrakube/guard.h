/*
 * guard.h - may this step start? Kubernetes starts the pod of a Job again after it was lost, with
 * the same payload: what may have changed resources is not repeated. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_GUARD_H
#define DF_RUNNER_TERRAKUBE_GUARD_H

#include "runner/context.h"

/* Asks the API until the step must stop, and waits while another living pod runs the step, of which
 * nothing is reported then. On success df_terrakube_of(c)->job is set. CONFLICT, reason
 * StepOver: the step must not start, and the API knows what became of it. NOT_FOUND: the job was
 * deleted. */
int df_terrakube_guard(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

/* Directly before the API is told that the step runs: waits as above. For an apply, a destroy and
 * the commands of onReject it asks the API again, and takes the step in Redis, so that of two pods
 * one goes on. Failures as above; a Redis that is away decides nothing. */
int df_terrakube_guard_change(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
