/*
 * blob.h - named byte strings of any size: states, plans, logs. Here in a directory; durable when a
 * call returned 0.
 *
 * Keys are slash-separated segments of [A-Za-z0-9._-], none of them "." or "..", at most
 * DF_LIMIT_BLOB_KEY bytes: class USER otherwise. Files are mode 0600. A blob is replaced whole or
 * not at all: a reader, a failure or a kill never leaves a part. One process a directory. Thread
 * rule: any thread; two writers of one key are serialised by the caller (create decides by itself).
 */
#ifndef DF_BLOB_H
#define DF_BLOB_H

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_blob; /* opaque */

/* Makes the directory when absent; unfinished files of a former process are removed. */
int df_blob_open(const char *directory, struct df_blob **ret, struct df_err *err) DF_MUST_CHECK;
void df_blob_close(struct df_blob *b);

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n,
                struct df_err *err) DF_MUST_CHECK;
/* CONFLICT if the key exists: the building stone of locks. */
int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Moves a finished file (same file system as df_blob_tmp_dir) into place. */
int df_blob_put_file(struct df_blob *b, const char *key, const char *path,
                     struct df_err *err) DF_MUST_CHECK;
/* The same for a file that means nothing before a second blob in the same directory names it: its
 * content is durable on return, its name with the next put, create or put_file there. Saves a
 * directory sync. */
int df_blob_stage_file(struct df_blob *b, const char *key, const char *path,
                       struct df_err *err) DF_MUST_CHECK;
/* Makes a blob durable that is there although a call had failed at its last sync. */
int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Appends to out; more than out->max: class LIMIT. */
int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out,
                struct df_err *err) DF_MUST_CHECK;
/* An open descriptor for reading; the caller closes. size may be NULL. */
int df_blob_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                      struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err) DF_MUST_CHECK;
/* Everything below prefix (a whole directory), and the directory. Absent is success. */
int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err) DF_MUST_CHECK;
/* Keys below prefix (a whole directory; "" for all), sorted, added to out. */
int df_blob_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                 struct df_err *err) DF_MUST_CHECK;

/* Append-only blobs (streams). Appends at exactly this offset: CONFLICT with *ret_size the true
 * size if it is another; a frame that overlaps is the caller's to cut. Durable (fdatasync) on
 * return. ret_size is also set on success. What a failed append wrote is cut off again. */
int df_blob_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                   int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* 0 for an absent blob. */
int df_blob_size(struct df_blob *b, const char *key, int64_t *ret_size,
                 struct df_err *err) DF_MUST_CHECK;

/* Where to build files for df_blob_put_file. Borrowed. */
const char *df_blob_tmp_dir(const struct df_blob *b);

#endif
