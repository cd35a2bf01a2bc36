/*
 * step_secrets.h - secrets of the vault for a step: only those that its executor may use. Thread
 * rule: any thread.
 */
#ifndef DF_STEPS_STEP_SECRETS_H
#define DF_STEPS_STEP_SECRETS_H

#include "spawner/spawner.h"

/* *ret: key -> value; delete it with df_json_wipe(). what: the field that refers to the secret, for
 * messages. Class USER, reason InvalidStep, if there is no such secret; SecretNotAllowed if it is
 * not for the step's executor. */
int df_step_secret(struct df_spawner *s, const cJSON *task, const char *name, const char *what,
                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
