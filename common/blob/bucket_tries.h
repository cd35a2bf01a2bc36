/*
 * bucket_tries.h - requests to a bucket, repeated after failures of class RETRY. They fail as those
 * of bucket.h do. Internal to common/blob. Thread rule: any thread.
 */
#ifndef DF_BLOB_BUCKET_TRIES_H
#define DF_BLOB_BUCKET_TRIES_H

#include "common/blob/bucket.h"

/* True, after a pause, if a call of b that failed shall be repeated: not after df_bucket_hasten().
 * *failures begins with 0. */
bool df_bucket_repeats(const struct df_bucket *b, int *failures, const struct df_err *why);

/* Ends the pauses of other threads, and from now on nothing is repeated. */
void df_bucket_hasten(struct df_bucket *b);

/* out is emptied before each attempt. */
int df_bucket_get(struct df_bucket *b, const char *name, struct df_buf *out,
                  struct df_bucket_version *ret_version, struct df_err *err) DF_MUST_CHECK;

/* *ret_unsure becomes true if an attempt failed whose request may have been executed. */
int df_bucket_put(struct df_bucket *b, const char *name, const struct df_buf *content,
                  const struct df_bucket_version *version, bool *ret_unsure,
                  struct df_err *err) DF_MUST_CHECK;

/* Success if it is absent. */
int df_bucket_remove(struct df_bucket *b, const char *name, const struct df_bucket_version *version,
                     struct df_err *err) DF_MUST_CHECK;

#endif
