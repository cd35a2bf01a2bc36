/*
 * secret_forms.h - how an entry of spec.secrets passes the keys of its secret on: as variables of
 * the module, as environment variables, or as files whose paths are in variables.
 *
 * Thread rule: pure functions over the document handed in.
 */
#ifndef DF_SECRET_FORMS_H
#define DF_SECRET_FORMS_H

#include "common/json/json.h"

/* Does the entry pass its values as files? */
bool df_secret_is_file(const cJSON *entry);

/* The environment variable that gets the value of this key, or the path of its file. The caller
 * frees; NULL on no memory. */
char *df_secret_variable(const cJSON *entry, const char *key);

/* Fails with USER, reason InvalidStep, if this key of the secret cannot become a variable. */
int df_secret_check_key(const cJSON *entry, const char *key, struct df_err *err) DF_MUST_CHECK;

/* Does the entry set this variable? False for an entry without "keys": its keys are known only from
 * the secret. */
bool df_secret_sets(const cJSON *entry, const char *variable);

#endif
