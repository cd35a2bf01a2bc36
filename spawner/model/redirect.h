/*
 * redirect.h - variables of the environment that lead a backend to another place than spec.storage
 * says: with one of them two executors would share a state, and nobody would see it in their
 * documents. They are refused; the setting of spec.storage.config is the way to say the same.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_REDIRECT_H
#define DF_MODEL_REDIRECT_H

#include "common/json/json.h"

/* The setting of spec.storage.config to use instead ("endpoints.s3"); NULL if the variable with
 * this value leads to the place of this storage (NULL: none), or to no state. value NULL: not
 * known, as that of a secret. Borrowed literal. Without memory: as if it led elsewhere. */
const char *df_redirect_setting(const cJSON *storage, const char *variable, const char *value);

/* Checks all variables of a map, name -> value. Class USER, this reason. */
int df_redirect_check(const cJSON *storage, const cJSON *variables, const char *reason,
                      struct df_err *err) DF_MUST_CHECK;

#endif
