/*
 * step_auth.h - the tokens of a step. The TaskAction has only their hashes.
 */
#ifndef DF_STEPS_STEP_AUTH_H
#define DF_STEPS_STEP_AUTH_H

#include "spawner/spawner.h"

/* which: "claim", valid for one claim; "step", valid until the step ends; "state", valid until the
 * engine has proven that no process of the step lives. DENIED for a wrong token. Constant time. */
int df_step_check_token(const cJSON *task, const char *which, const char *token,
                        struct df_err *err) DF_MUST_CHECK;

/* The TaskAction of the step, if this is its step token and the step has not ended (else CONFLICT
 * StepOver). */
int df_step_open(struct df_spawner *s, const char *uid, const char *token, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

int df_step_fail_over(struct df_err *err);

/* A new token and its hash. */
int df_step_new_token(char ret_token[65], char ret_hash[65], struct df_err *err) DF_MUST_CHECK;

#endif
