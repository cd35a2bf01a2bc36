/*
 * review.h - the answer to the API server's AdmissionReview (admission.k8s.io/v1) of an Executor, a
 * Run or a TaskAction: a patch that writes who made the request into the annotations of stamp.h. It
 * replaces what the client wrote there. It has no side effect and allows everything else: the
 * policy of rbac/admission.yaml is what refuses. A deletion is allowed without a patch, whoever
 * asks.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_REVIEW_H
#define DF_MODEL_REVIEW_H

#include "common/json/json.h"
#include "spawner/model/names.h"
#include "spawner/model/stamp.h"

/* The answer for a user of this role, an AdmissionReview. A user whose name cannot be kept (empty,
 * too long, a control character) is refused in the answer. USER InvalidDocument: it is no
 * AdmissionReview of a resource of ours. */
int df_review_answer(const cJSON *review, enum df_role role, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* True if it is about a deletion by a user whose name can be kept, and no dry run. ret_uid: of the
 * document; borrowed. */
bool df_review_deletion(const cJSON *review, enum df_role role, const char **ret_uid,
                        struct df_stamp *ret_by);

#endif
