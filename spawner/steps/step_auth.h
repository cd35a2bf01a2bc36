/*
 * step_auth.h - the tokens of a step. The TaskAction contains only their hashes.
 */
#ifndef DF_STEPS_STEP_AUTH_H
#define DF_STEPS_STEP_AUTH_H

#include "spawner/spawner.h"

/* Compares the token with its hash in the TaskAction, in constant time. DENIED for a wrong token.
 * which: "claim", valid for one claim; "step", valid until the step ends; "state", valid until the
 * engine has proven that no process of the step lives; "providers", for as long. */
int df_step_check_token(const cJSON *task, const char *which, const char *token,
                        struct df_err *err) DF_MUST_CHECK;

/* *ret: a reference to the TaskAction of the step. DENIED if token is not its step token; CONFLICT StepOver if the
 * step has ended. */
int df_step_open(struct df_spawner *s, const char *uid, const char *token, const cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Whether token is the step token, also of a step that has ended (its result may be repeated). */
int df_step_check(struct df_spawner *s, const char *uid, const char *token,
                  struct df_err *err) DF_MUST_CHECK;

int df_step_fail_over(struct df_err *err);

/* A new token and its hash. */
int df_step_new_token(char ret_token[65], char ret_hash[65], struct df_err *err) DF_MUST_CHECK;

#endif
