/*
 * difference.h - what differs between two documents or parts of them, path by path. Values of
 * environment variables are not told. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_DIFFERENCE_H
#define DF_MODEL_DIFFERENCE_H

#include "common/base/err.h"
#include "common/json/json.h"

#define DF_DIFFERENCE_HIDDEN "(hidden)"

/* *ret: an array of {path, old, new}, without `old` where the path is new, and without `new` where
 * it is gone; it begins with root ("spec"). Items of lists are told apart by their name, as in
 * `spec.environment[REGION].value`; a list whose items have none is one value. A value of an
 * environment variable is DF_DIFFERENCE_HIDDEN. The caller deletes *ret. */
int df_difference(const char *root, const cJSON *old, const cJSON *now, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
