/*
 * content.h - compression of what is stored of a blob (zstd). Internal to common/blob.
 */
#ifndef DF_BLOB_CONTENT_H
#define DF_BLOB_CONTENT_H

#include "common/base/buf.h"

/* Appends the compressed bytes to out. */
int df_blob_pack(const void *bytes, size_t n, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* Appends exactly n decompressed bytes to out; the size in the compressed data is not trusted.
 * SYSTEM if the packed bytes are something else. */
int df_blob_unpack(const void *packed, size_t packed_n, size_t n, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

#endif
