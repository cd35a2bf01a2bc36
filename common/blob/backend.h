/*
 * backend.h - what a backend of blobs does. Internal to common/blob.
 *
 * There are two. directory.c is a real file system: it appends to a file, renames into place, and
 * hands out the file itself. chunked.c makes the same of an object store, which can do neither.
 *
 * Keys and prefixes are checked before they come here. The meaning of each call is blob.h's.
 */
#ifndef DF_BLOB_BACKEND_H
#define DF_BLOB_BACKEND_H

#include "common/blob/blob.h"

/* What is put: bytes, or the file at path, which is gone afterwards. */
struct df_blob_content {
    const void *bytes;
    size_t n;
    const char *path; /* NULL: bytes */
};

enum df_blob_how {
    DF_BLOB_REPLACE,
    DF_BLOB_CREATE, /* CONFLICT if the key exists; bytes only */
    DF_BLOB_STAGE   /* its name need not be durable before the next put beside it is */
};

struct df_blob_ops {
    void (*close)(struct df_blob *b);
    int (*put)(struct df_blob *b, const char *key, const struct df_blob_content *content,
               enum df_blob_how how, struct df_err *err);
    int (*append)(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                  int64_t *ret_size, struct df_err *err);
    /* A range: from offset on, as far as out has room. */
    int (*get)(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
               int64_t *ret_size, struct df_err *err);
    int (*open_read)(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                     struct df_err *err);
    int (*size)(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err);
    int (*remove)(struct df_blob *b, const char *key, struct df_err *err);
    int (*list)(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err);

    /* A file system's. NULL where every blob that is there is durable. */
    int (*sync)(struct df_blob *b, const char *key, struct df_err *err);
    /* A file system's, which has directories to remove. NULL: each blob is removed. */
    int (*remove_all)(struct df_blob *b, const char *prefix, struct df_err *err);
};

/* What every backend begins with. */
struct df_blob {
    const struct df_blob_ops *ops;
    char *tmp; /* df_blob_tmp_dir(); freed by df_blob_close() */
};

/* Is it the text of a key? */
bool df_blob_key_is_good(const char *key);

/* A stream has another size than the writer thinks: always -1. */
int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err);

/* There is no such blob, NOT_FOUND: always -1. */
int df_blob_fail_absent(const char *key, struct df_err *err);

#endif
