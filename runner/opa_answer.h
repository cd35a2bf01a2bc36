/*
 * opa_answer.h - reads what `opa eval --format json` has printed. Thread rule: any thread.
 */
#ifndef DF_RUNNER_OPA_ANSWER_H
#define DF_RUNNER_OPA_ANSWER_H

#include "common/json/json.h"

/* *ret: the value of the query, an object, for the caller to delete. query: "data.main". tail: the
 * end of its standard error. Class USER if opa or its rules failed, or if the rules have no such
 * package: then nothing was evaluated. */
int df_opa_answer(const struct df_buf *out, const char *tail, int code, const char *query,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
