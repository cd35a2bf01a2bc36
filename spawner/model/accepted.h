/*
 * accepted.h - what a document says about its acceptance. What people write with kubectl is stored
 * before anybody has looked at it: the service accepts it, or refuses it with InvalidDocument.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_ACCEPTED_H
#define DF_ACCEPTED_H

#include "common/json/json.h"

#define DF_REASON_REFUSED "InvalidDocument"

/* Was it refused? Then it is there for people to mend or remove, and counts for nothing else. */
bool df_doc_is_refused(const cJSON *doc);

/* Has the service looked at the executor's spec as it is now? */
bool df_executor_is_accepted(const cJSON *executor);

/* May it be run: was it looked at, and not refused? RETRY NotTakenIn, CONFLICT WrongState. */
int df_executor_check_accepted(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
