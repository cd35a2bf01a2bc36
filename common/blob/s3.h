/*
 * s3.h - blobs in a bucket of S3, or of a store that speaks its protocol (MinIO, Ceph, R2,
 * versitygw, ...). Thread rule: any thread.
 */
#ifndef DF_BLOB_S3_H
#define DF_BLOB_S3_H

#include "common/aws/keys.h"
#include "common/blob/bucket.h"

struct df_s3_options {
    const char *bucket;
    const char *prefix; /* segments as of a key; "" or NULL: the whole bucket is ours */
    const char *region; /* "eu-central-1" */
    /* Used from when on the store said that region is wrong; or NULL. For stores whose region is
     * not known: some take any, others their own only. */
    const char *other_region;
    const char *endpoint; /* "https://minio.example:9000"; "" or NULL: AWS's of the region */
    const char *ca_file;  /* PEM; NULL: the system's */
    const char *ca_pem;   /* the same as text, instead of a file; or NULL */
    const struct df_aws_keys *keys; /* instead of those of credentials.h; or NULL */
    bool path_style; /* <endpoint>/<bucket>/<key> instead of <bucket>.<endpoint>/<key> */
    bool names_keys; /* messages name the keys blobs.* of the configuration and the way out */
};

/* A driver for df_blob_bucket_open(), which takes it. The options are copied. Credentials come from
 * where credentials.h says. Sends no request yet. USER: an option is not as it must be. */
int df_s3_bucket_new(const struct df_s3_options *o, struct df_bucket **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
