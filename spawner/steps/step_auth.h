/*
 * step_auth.h - the tokens of a step. The TaskAction contains only their hashes.
 */
#ifndef DF_STEPS_STEP_AUTH_H
#define DF_STEPS_STEP_AUTH_H

#include "common/crypto/crypto.h"
#include "spawner/spawner.h"

/* Compares the token with its hash in the TaskAction, in constant time. DENIED for a wrong token.
 * which: "claim", valid for one claim; "step", valid until the step ends; "state", valid until the
 * engine has proven that no process of the step lives; "providers", for as long. */
int df_step_check_token(const cJSON *task, const char *which, const char *token,
                        struct df_err *err) DF_MUST_CHECK;

/* *ret: a reference to the TaskAction of the step. DENIED if token is not its step token; CONFLICT
 * StepOver if the step has ended. */
int df_step_open(struct df_spawner *s, const char *uid, const char *token, const cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Whether token is the step token, also of a step that has ended (its result may be repeated). */
int df_step_check(struct df_spawner *s, const char *uid, const char *token,
                  struct df_err *err) DF_MUST_CHECK;

int df_step_fail_over(struct df_err *err);

/* The token `which` ("step", "state", "providers") of the runner that has claimed the step with
 * this id, and its hash. As long as the vault has its key the same claim gets the same token, so
 * that an answer that comes late takes nothing from a newer one. Nobody can compute it without that
 * key. */
int df_step_make_token(struct df_spawner *s, const char *uid, const char *claim_id,
                       const char *which, char ret_token[DF_SHA256_HEX],
                       char ret_hash[DF_SHA256_HEX], struct df_err *err) DF_MUST_CHECK;

#endif
