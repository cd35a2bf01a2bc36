/*
 * idempotency.h - the Idempotency-Key header: the same POST sent twice makes one thing.
 *
 * The key and a digest of the body are written into the metadata of what is made, in the same
 * write: a spawner that was killed in between has made both or nothing. Keys are good for one
 * caller and path, for as long as the document lives. Thread rule: callers hold df_api.creating
 * from find to the end of the create.
 */
#ifndef DF_API_IDEMPOTENCY_H
#define DF_API_IDEMPOTENCY_H

#include "spawner/api/exchange.h"

struct df_idempotency {
    char key[41];  /* hex; "" without a key */
    char body[65]; /* hex */
};

/* Reads the header (absent: *ret is empty and *ret_made NULL) and looks for what this key made
 * before. USER IdempotencyKeyReused when that was asked for with another body. The caller deletes
 * *ret_made. */
int df_idempotency_find(const struct df_request *req, enum df_kind kind, struct df_idempotency *ret,
                        cJSON **ret_made, struct df_err *err) DF_MUST_CHECK;

/* Adds the key to the object's members "labels" and "annotations". */
int df_idempotency_mark(const struct df_idempotency *i, cJSON *metadata,
                        struct df_err *err) DF_MUST_CHECK;

#endif
