/*
 * home.h - what a home of blobs does. Internal to common/blob.
 *
 * Keys and prefixes are checked before they come here. The meaning of each call is blob.h's.
 */
#ifndef DF_BLOB_HOME_H
#define DF_BLOB_HOME_H

#include "common/blob/blob.h"

struct df_blob_ops {
    void (*close)(struct df_blob *b);
    int (*put)(struct df_blob *b, const char *key, const void *bytes, size_t n, struct df_err *err);
    int (*create)(struct df_blob *b, const char *key, const void *bytes, size_t n,
                  struct df_err *err);
    int (*put_file)(struct df_blob *b, const char *key, const char *path, struct df_err *err);
    int (*stage_file)(struct df_blob *b, const char *key, const char *path, struct df_err *err);
    int (*sync)(struct df_blob *b, const char *key, struct df_err *err);
    int (*open_read)(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                     struct df_err *err);
    int (*read_at)(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                   int64_t *ret_size, struct df_err *err);
    int (*remove)(struct df_blob *b, const char *key, struct df_err *err);
    int (*remove_all)(struct df_blob *b, const char *prefix, struct df_err *err);
    int (*list)(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err);
    int (*append)(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                  int64_t *ret_size, struct df_err *err);
    int (*size)(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err);
};

/* What every home begins with. */
struct df_blob {
    const struct df_blob_ops *ops;
    char *tmp; /* df_blob_tmp_dir(); freed by df_blob_close() */
};

/* Is it the text of a key? */
bool df_blob_key_is_good(const char *key);

/* A stream has another size than the writer thinks: always -1. */
int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err);

#endif
