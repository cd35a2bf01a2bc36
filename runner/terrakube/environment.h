/*
 * environment.h - what the tool and the scripts of a step of Terrakube find in their environment
 * and in their HOME. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_ENVIRONMENT_H
#define DF_RUNNER_TERRAKUBE_ENVIRONMENT_H

#include "runner/context.h"

/* Adds the container's variables without the platform's, then those of the job, to the environment
 * of the workspace; writes ~/.terraformrc with a token for the registry of Terrakube. */
int df_terrakube_environment_add(struct df_context *c, struct df_err *err) DF_MUST_CHECK;

#endif
