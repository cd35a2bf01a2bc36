/*
 * problem.h - a failure as an HTTP response: RFC 9457 problem+json.
 *
 * {"type": "https://dayfly.dev/problems/<Reason>", "title", "status", "detail"}. The reason is a
 * stable word ("StateLocked"): programs read type and status, people read detail. Thread rule: pure
 * functions.
 */
#ifndef DF_SPAWNER_HTTP_PROBLEM_H
#define DF_SPAWNER_HTTP_PROBLEM_H

#include "common/json/json.h"

#define DF_PROBLEM_TYPE "application/problem+json"

/* The HTTP status of a failure: the status of its reason if that has one, else the status of its
 * class. */
int df_problem_status(const struct df_err *err);

/* Appends the document. extra: further members, or NULL. */
int df_problem_write(const struct df_err *problem, const cJSON *extra, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

#endif
