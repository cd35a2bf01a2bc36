/*
 * azblob.h - a container of Azure Blob Storage, by its REST API. Thread rule: any thread.
 */
#ifndef DF_BLOB_AZBLOB_H
#define DF_BLOB_AZBLOB_H

#include "common/blob/bucket.h"

struct df_azblob_options {
    const char *account;
    const char *place;    /* "container" or "container/prefix"; segments as of a key */
    const char *endpoint; /* of the account's Blob service; NULL or "":
                             "https://<account>.blob.core.windows.net". That of an emulator has the
                             account in its path */
    const char *ca_file;  /* PEM; NULL: the system's */
    const char *ca_pem;   /* the same as text, instead of a file; or NULL */
    const char *key;      /* of the account, in base64, instead of credentials.h; or NULL */
    bool makes_container; /* put() makes the container if there is none */
    bool names_keys;      /* messages name the keys blobs.* of the configuration and the way out */
};

/* A driver for df_blob_bucket_open(), which takes it. The options are copied. Credentials come from
 * where azure/credentials.h says. Sends no request yet. USER: an option is not as it must be. */
int df_azblob_bucket_new(const struct df_azblob_options *o, struct df_bucket **ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
