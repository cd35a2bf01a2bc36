/*
 * health.h - whether the store of a running service can be read and written, as its calls found it.
 * Internal to common/blob. Thread rule: any thread.
 */
#ifndef DF_BLOB_HEALTH_H
#define DF_BLOB_HEALTH_H

#include "common/blob/blob.h"

enum df_blob_direction { DF_BLOB_READS, DF_BLOB_WRITES, DF_BLOB_DIRECTIONS };

/* The reason of what the store refused a running service. */
#define DF_BLOB_REFUSED "StorageRefused"

struct df_blob_health; /* opaque */

int df_blob_health_new(const struct df_blob_service *service, struct df_blob_health **ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_blob_health_free(struct df_blob_health *h); /* NULL is fine */

/* A call of the store ended like this. why: class NONE: with success. What the store refused
 * becomes RETRY StorageRefused. Tells the service if this changes something. */
void df_blob_health_note(struct df_blob_health *h, enum df_blob_direction direction,
                         struct df_err *why);

/* Tells the service something else about its store: one sentence. */
void df_blob_health_tell(const struct df_blob_health *h, enum df_err_class cls,
                         const char *sentence);

/* True if the last call in this direction failed. */
bool df_blob_health_fails(struct df_blob_health *h, enum df_blob_direction direction);

/* True if the store is asked although nothing failed. */
bool df_blob_health_is_remote(const struct df_blob_health *h);

/* As df_blob_check(). */
int df_blob_health_check(struct df_blob_health *h, struct df_err *err) DF_MUST_CHECK;

#endif
