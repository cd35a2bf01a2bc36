/*
 * step_auth.h - the tokens of a step, of which the TaskAction keeps the hashes alone.
 */
#ifndef DF_STEPS_STEP_AUTH_H
#define DF_STEPS_STEP_AUTH_H

#include "spawner/spawner.h"

/* Which of the three: "claim", good once; "step", until the step's end; "state", until the engine
 * has proven every process of the step dead. DENIED when it is not this one. Constant time. */
int df_step_check_token(const cJSON *task, const char *which, const char *token,
                        struct df_err *err) DF_MUST_CHECK;

/* The TaskAction of a step whose step token this is, as long as it is not over (CONFLICT
 * StepOver). */
int df_step_open(struct df_spawner *s, const char *uid, const char *token, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

int df_step_fail_over(struct df_err *err);

/* A new token and its hash. */
int df_step_new_token(char ret_token[65], char ret_hash[65], struct df_err *err) DF_MUST_CHECK;

#endif
