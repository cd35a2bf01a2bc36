/*
 * backend.h - what a backend of blobs does. Internal to common/blob.
 *
 * There are two. directory.c uses a file system: it appends to a file, renames into place, and
 * returns the file itself. chunked.c does the same with an object store, which can do none of that.
 *
 * blob.c has checked keys and prefixes. Each call means the same as in blob.h.
 */
#ifndef DF_BLOB_BACKEND_H
#define DF_BLOB_BACKEND_H

#include "common/blob/blob.h"
#include "common/blob/health.h"

/* Bytes, or the file at path, which put() moves away. */
struct df_blob_content {
    const void *bytes;
    size_t n;
    const char *path; /* NULL: bytes */
};

enum df_blob_how {
    DF_BLOB_REPLACE,
    DF_BLOB_CREATE /* CONFLICT if the key exists; bytes only */
};

struct df_blob_ops {
    void (*close)(struct df_blob *b);
    /* NULL: nothing is repeated. */
    void (*hasten)(struct df_blob *b);
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
    /* c NULL: whatever it is. *ret is DF_BLOB_STAYS at first, and DF_BLOB_REMOVED once the removal
     * is tried, even if it fails. */
    int (*remove)(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                  enum df_blob_removal *ret, struct df_err *err);
    int (*list)(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err);
    int (*each)(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                struct df_err *err);

    /* NULL: nobody can take the place over. */
    int (*check_owner)(struct df_blob *b, bool at_once, struct df_err *err);
    /* Only for file systems. NULL: every blob is durable. */
    int (*sync)(struct df_blob *b, const char *key, struct df_err *err);
    /* Only for file systems, which have directories. NULL: the blobs are removed one by one. */
    int (*remove_all)(struct df_blob *b, const char *prefix, struct df_err *err);
};

/* What every backend begins with. */
struct df_blob {
    const struct df_blob_ops *ops;
    char *tmp;                     /* df_blob_tmp_dir(); freed by df_blob_close(), as the next */
    struct df_blob_health *health; /* NULL: no service works with it */
};

/* True if the text consists of segments as a key does, whatever its length. */
bool df_blob_path_is_good(const char *path);

/* True if the text is a valid key. */
bool df_blob_key_is_good(const char *key);

/* CONFLICT: the stream has another size than the writer assumed. Returns -1. */
int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err);

/* NOT_FOUND: there is no such blob. Returns -1. */
int df_blob_fail_absent(const char *key, struct df_err *err);

/* LIMIT: the blob is larger than `max`. */
int df_blob_check_room(const char *key, int64_t size, size_t max, struct df_err *err) DF_MUST_CHECK;

#define DF_BLOB_DAMAGED "BlobDamaged"

/* SYSTEM BlobDamaged: this object, of a blob, is not what was put. Returns -1. */
int df_blob_fail_damaged(const char *object, struct df_err *err);

#endif
