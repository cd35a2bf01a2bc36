/*
 * problem.h - a failure as an HTTP answer: RFC 9457 problem+json.
 *
 * {"type": "https://dayfly.dev/problems/<Reason>", "title", "status", "detail"}. The reason is the
 * stable word of the failure ("StateLocked"): programs decide by type and status; people read
 * detail. Thread rule: pure functions.
 */
#ifndef DF_API_PROBLEM_H
#define DF_API_PROBLEM_H

#include "common/json/json.h"

#define DF_PROBLEM_TYPE "application/problem+json"

/* The HTTP status of a failure: by its reason where that is more precise, else by its class. */
int df_problem_status(const struct df_err *err);

/* Appends the document. extra: further members, or NULL. */
int df_problem_write(const struct df_err *problem, const cJSON *extra, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

#endif
