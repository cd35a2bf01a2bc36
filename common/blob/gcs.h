/*
 * gcs.h - a bucket of Google Cloud Storage, by its JSON API. Thread rule: any thread.
 */
#ifndef DF_BLOB_GCS_H
#define DF_BLOB_GCS_H

#include "common/blob/bucket.h"

struct df_gcs_options {
    const char *bucket;
    const char *prefix;      /* segments as of a key; "" or NULL: the whole bucket is ours */
    const char *endpoint;    /* "https://storage.googleapis.com" if NULL or "" */
    const char *ca_file;     /* PEM; NULL: the system's */
    const char *ca_pem;      /* the same as text, instead of a file; or NULL */
    bool anonymous;          /* sends no credentials: for an emulator */
    const char *token;       /* an access token, instead of credentials.h; or NULL */
    const char *credentials; /* the text of such a file as credentials.h reads, instead; or NULL */
    bool names_keys; /* messages name the keys blobs.* of the configuration and the way out */
};

/* A driver for df_blob_bucket_open(), which takes it. The options are copied. Credentials come from
 * where gcp/credentials.h says. Sends no request yet. USER: an option is not as it must be. */
int df_gcs_bucket_new(const struct df_gcs_options *o, struct df_bucket **ret,
                      struct df_err *err) DF_MUST_CHECK;

#endif
