/*
 * idempotency.h - the Idempotency-Key header: the same POST sent twice creates one document.
 *
 * The key and a digest of the body are stored in the metadata of the new document, in the same
 * write, so that a killed spawner has stored both or neither. A key is valid for one caller and
 * path, as long as the document exists. POSTs with a key run one at a time; others run in parallel.
 */
#ifndef DF_API_IDEMPOTENCY_H
#define DF_API_IDEMPOTENCY_H

#include "spawner/http/request.h"

/* Creates the requested document. marks: labels and annotations for its metadata; or NULL. */
typedef int (*df_creator)(struct df_request *req, const cJSON *marks, cJSON **ret,
                          struct df_err *err);

/* Responds with the document that create() makes, or with the one that the same key made before.
 * USER IdempotencyKeyReused if that request had another body. */
int df_create_once(struct df_request *req, struct df_response *res, enum df_kind kind,
                   df_creator create, struct df_err *err) DF_MUST_CHECK;

#endif
