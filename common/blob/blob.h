/*
 * blob.h - named byte strings of any size: states, plans, logs. Durable when a call returned 0.
 *
 * Keys are slash-separated segments of [A-Za-z0-9._-], none of them "." or "..", at most
 * DF_LIMIT_BLOB_KEY bytes: class USER otherwise. A blob is replaced whole or not at all: a reader,
 * a failure or a kill never leaves a part. Thread rule: any thread; two writers of one key are
 * serialised by the caller (create and append decide by themselves).
 *
 * One interface, two backends. A directory: files of mode 0600, one process a directory. An object
 * store: any number of processes. The only one is a namespace of Kubernetes, where blobs are in
 * Secrets and what only they can open; failures are those of kube.h besides. There class RETRY may
 * mean that the call was done and its answer lost: put and delete are simply repeated, a repeated
 * create or append finds out by its CONFLICT.
 */
#ifndef DF_BLOB_H
#define DF_BLOB_H

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_blob; /* opaque */
struct df_kube;

/* Makes the directory when absent; unfinished files of a former process are removed. */
int df_blob_open(const char *directory, struct df_blob **ret, struct df_err *err) DF_MUST_CHECK;

struct df_blob_kube_options {
    struct df_kube *kube; /* borrowed: must live on */
    const char *name_space;
    const char *directory; /* its tmp/ is this process's alone, for what is built or read: made when
                              absent, emptied when it is there; nothing else in it is touched */
};
/* In a namespace; how they lie there says head.h. A blob has at most
 * DF_LIMIT_BLOB_KUBE bytes there: class LIMIT beyond. Asks the API server nothing yet. What killed
 * writers left is removed an hour later, by whoever lists then. */
int df_blob_kube_open(const struct df_blob_kube_options *o, struct df_blob **ret,
                      struct df_err *err) DF_MUST_CHECK;

void df_blob_close(struct df_blob *b); /* NULL is fine */
static inline void df_cleanup_blob(struct df_blob **b)
{
    df_blob_close(*b);
}
#define DF_BLOB DF_CLEANUP(df_cleanup_blob)

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n,
                struct df_err *err) DF_MUST_CHECK;
/* CONFLICT if the key exists: the building stone of locks. */
int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Moves a finished file (same file system as df_blob_tmp_dir) into place: it is gone afterwards. */
int df_blob_put_file(struct df_blob *b, const char *key, const char *path,
                     struct df_err *err) DF_MUST_CHECK;
/* The same for a file that means nothing before a second blob in the same directory names it: its
 * content is durable on return, its name with the next put, create or put_file there. Saves a
 * directory sync. */
int df_blob_stage_file(struct df_blob *b, const char *key, const char *path,
                       struct df_err *err) DF_MUST_CHECK;
/* Makes a blob durable that is there although a call had failed at its last sync. In an object
 * store what is there is durable. */
int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Appends to out; more than out->max: class LIMIT. */
int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out,
                struct df_err *err) DF_MUST_CHECK;
/* An open descriptor for reading; the caller closes. size may be NULL. */
int df_blob_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                      struct df_err *err) DF_MUST_CHECK;
/* What lies from offset on, as far as out has room, is added to out; nothing when the blob ends
 * before. *ret_size: of the whole blob at that moment. NOT_FOUND when absent. For those who follow
 * a stream: nothing before offset is fetched. */
int df_blob_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                    int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Everything below prefix (a whole directory), and the directory. Absent is success. */
int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err) DF_MUST_CHECK;
/* Keys below prefix (a whole directory; "" for all), sorted, added to out. */
int df_blob_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                 struct df_err *err) DF_MUST_CHECK;

/* Append-only blobs (streams). Appends at exactly this offset: CONFLICT with *ret_size the true
 * size if it is another; a frame that overlaps is the caller's to cut. ret_size is also set on
 * success. What a failed append wrote is cut off again, but where its answer was lost. */
int df_blob_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                   int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* 0 for an absent blob. */
int df_blob_size(struct df_blob *b, const char *key, int64_t *ret_size,
                 struct df_err *err) DF_MUST_CHECK;

/* Where to build files for df_blob_put_file. Borrowed. */
const char *df_blob_tmp_dir(const struct df_blob *b);

#endif
