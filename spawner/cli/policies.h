/*
 * policies.h - shows people what the policies said of a plan. Thread rule: pure functions, any
 * thread.
 */
#ifndef DF_CLI_POLICIES_H
#define DF_CLI_POLICIES_H

#include "common/base/buf.h"
#include "common/json/json.h"

/* Appends the results of this Run or step with their messages, if it has some. df_buf_check() of
 * out reports a failure. */
void df_policies_show(const cJSON *doc, struct df_buf *out);

/* Appends the same in a few words: "3 passed", "1 of 3 failed". results: status.policies; NULL:
 * nothing. */
void df_policies_count(const cJSON *results, struct df_buf *out);

#endif
