/*
 * blob_bucket.h - the bucket of blobs.location, as the other keys blobs.* reach it. Thread rule:
 * any thread.
 */
#ifndef DF_CONFIG_BLOB_BUCKET_H
#define DF_CONFIG_BLOB_BUCKET_H

#include "common/blob/bucket.h"
#include "spawner/config/config.h"

/* location: "s3://bucket/prefix", "gs://..." or "azblob://account/container/prefix". Sends no
 * request. The caller closes *ret, or gives it to df_blob_bucket_open(). USER: a name or key is
 * wrong; the message begins with the key. */
int df_config_bucket(const struct df_config *c, const char *location, struct df_bucket **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
