/*
 * chunked.h - blobs in an object store: heads, immutable chunks, compare and swap. Internal to
 * common/blob; the layout is in head.h.
 */
#ifndef DF_BLOB_CHUNKED_H
#define DF_BLOB_CHUNKED_H

#include "common/blob/backend.h"
#include "common/blob/head_cache.h"
#include "common/blob/objects.h"

/* The backend over this store. Takes ownership of objects, also on failure. directory: its tmp/
 * belongs to this process: created if absent, else emptied. */
int df_blob_chunked_open(struct df_objects *objects, const char *directory, struct df_blob **ret,
                         struct df_err *err) DF_MUST_CHECK;

/* ---- what its parts share ------------------------------------------------------------------- */

struct df_blob_chunked {
    struct df_blob blob;
    struct df_objects *objects;
    int64_t swept_ms; /* monotonic, atomic: of the last sweep for orphans */
    /* Hash of the heads that did not open in it and that the service was told of; 0: none.
     * Atomic. */
    uint64_t told;
    /* What was put here last; both are empty if the store tells no versions. */
    struct df_blob_head_cache heads;    /* of blobs that grow or were created */
    struct df_blob_head_cache outlines; /* of the others, without tail and seal */
};

static inline struct df_blob_chunked *df_blob_chunked_of(struct df_blob *b)
{
    return (struct df_blob_chunked *)b; /* its first member */
}

/* Appends at most what out has room for. *ret: the head that was read, without a version if there
 * is no such blob. */
int df_blob_chunked_read(struct df_blob *b, const char *key, struct df_buf *out,
                         struct df_blob_head *ret, struct df_err *err) DF_MUST_CHECK;

/* chunked_read.c, chunked_list.c: the members of the same name of struct df_blob_ops */
int df_blob_chunked_get(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                        int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
int df_blob_chunked_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                              struct df_err *err) DF_MUST_CHECK;
int df_blob_chunked_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                         struct df_err *err) DF_MUST_CHECK;
int df_blob_chunked_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                         struct df_err *err) DF_MUST_CHECK;

#endif
