/*
 * bucket_head.h - a head as one object of a bucket. Internal to common/blob.
 *
 * It is sealed with the keyring, bound to its name: one line of JSON (key, size, chunk size, ids of
 * the chunks, the key of the chunks in base64), then the tail, compressed.
 */
#ifndef DF_BLOB_BUCKET_HEAD_H
#define DF_BLOB_BUCKET_HEAD_H

#include "common/blob/head.h"
#include "common/crypto/keyring.h"

/* Appends the object called name to out. */
int df_bucket_head_print(const struct df_keyring *keys, const char *name,
                         const struct df_blob_head *h, struct df_buf *out,
                         struct df_err *err) DF_MUST_CHECK;

/* Fills in h, made by df_blob_head_new(), but not its version. SYSTEM: it is damaged or of another
 * key; DENIED: as df_keyring_open(). */
int df_bucket_head_parse(const struct df_keyring *keys, const char *name,
                         const struct df_buf *object, struct df_blob_head *h,
                         struct df_err *err) DF_MUST_CHECK;

#endif
