/*
 * kube_home.h - what the parts of the home in Kubernetes share. Internal to common/blob.
 */
#ifndef DF_BLOB_KUBE_HOME_H
#define DF_BLOB_KUBE_HOME_H

#include "common/blob/kube_head.h"

struct df_blob_kube {
    struct df_blob blob;
    struct df_kube *kube; /* borrowed */
    char *name_space;
    int64_t swept_ms; /* monotonic, atomic: when somebody last looked for orphans */
};

static inline struct df_blob_kube *df_blob_kube_of(struct df_blob *b)
{
    return (struct df_blob_kube *)b; /* its first member */
}

/* The head or the chunk of this name; NULL: all of them. */
struct df_kube_at df_blob_kube_head_at(struct df_blob *b, const char *name);
struct df_kube_at df_blob_kube_chunk_at(struct df_blob *b, const char *name);

/* The head of a key. An absent one is an answer: its version is "". */
int df_blob_kube_head(struct df_blob *b, const char *key, bool metadata_only,
                      struct df_blob_head *ret, struct df_err *err) DF_MUST_CHECK;

/* "there is no such blob", NOT_FOUND: always -1. */
int df_blob_kube_absent(const char *key, struct df_err *err);

/* Deletes these chunks as far as it can: nothing names them any more, and what is left is an
 * orphan that is swept. */
void df_blob_kube_drop(struct df_blob *b, const struct df_strs *names);

/* ---- kube_read.c, kube_list.c: the members of the same name of struct df_blob_ops ---- */
int df_blob_kube_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                           struct df_err *err) DF_MUST_CHECK;
int df_blob_kube_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                         int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
int df_blob_kube_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                      struct df_err *err) DF_MUST_CHECK;
int df_blob_kube_remove_all(struct df_blob *b, const char *prefix,
                            struct df_err *err) DF_MUST_CHECK;

#endif
