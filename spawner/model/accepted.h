/*
 * accepted.h - was a document accepted? A document written with kubectl is stored before the
 * service has checked it. The service then accepts it, or refuses it with InvalidDocument,
 * PlacementDenied or, a Run alone, ErroredStatePending.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_ACCEPTED_H
#define DF_ACCEPTED_H

#include "common/json/json.h"

#define DF_REASON_REFUSED "InvalidDocument"

/* True if the service refused the document. It stays until somebody corrects or deletes it, and has
 * no effect until then. */
bool df_doc_is_refused(const cJSON *doc);

/* True if the service has checked the current spec of the executor. */
bool df_executor_is_accepted(const cJSON *executor);

/* Writes into status.status whether the executor is refused: only instead of `ready`, because the
 * other words say what its runs did. */
int df_executor_set_refused(cJSON *executor, bool is_refused, struct df_err *err) DF_MUST_CHECK;

/* May runs be created: was the executor checked and accepted? RETRY NotAccepted: not checked yet.
 * CONFLICT WrongState: refused. */
int df_executor_check_accepted(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
