/*
 * bucket.h - what a cloud's object store does, for blobs: whole objects under names, and compare
 * and swap by version. bucket.c makes the object store of objects.h of it: sealing, layout,
 * repeated attempts. A driver (driver.h) makes each call once, and tells how it ended.
 *
 * Failures of every call, besides those it names:
 *   RETRY   no answer, or a temporary fault: the request may have been executed. retry_after_s as
 *           the store asked for
 *   DENIED  the store does not accept the credentials, or they may not do this
 *   USER    there is no such bucket, or it is elsewhere: the configuration is wrong
 * NOT_FOUND is what the store itself says of the object: a page of somebody on the way, and
 * credentials that are not there, are RETRY. A state that is not found is made anew.
 * Thread rule: any thread.
 */
#ifndef DF_BLOB_BUCKET_H
#define DF_BLOB_BUCKET_H

#include "common/blob/blob.h"
#include "common/blob/head.h"
#include "common/crypto/keyring.h"

struct df_bucket;

struct df_bucket_version {
    char text[72]; /* ETag or generation; "": there must be no such object */
};

struct df_bucket_sink {
    /* made_us: by the store's clock. The name is borrowed and without the bucket's prefix. */
    int (*item)(void *arg, const char *name, int64_t size, int64_t made_us, struct df_err *err);
    void *arg;
};

/* A version of an object that the store keeps. Borrowed. */
struct df_bucket_kept {
    const char *id; /* the store's own; DF_BUCKET_UNVERSIONED: the bucket kept no versions then */
    int64_t size, made_us; /* by the store's clock */
};
#define DF_BUCKET_UNVERSIONED "null"

struct df_bucket_kept_sink {
    int (*item)(void *arg, const struct df_bucket_kept *kept, struct df_err *err);
    void *arg;
};

struct df_bucket_ops {
    void (*close)(struct df_bucket *b);
    /* Appends the whole object to out, which is empty. NOT_FOUND. */
    int (*get)(struct df_bucket *b, const char *name, struct df_buf *out,
               struct df_bucket_version *ret_version, struct df_err *err);
    /* The whole object into a file, which is emptied first. NOT_FOUND; LIMIT: it has more than max
     * bytes. */
    int (*save)(struct df_bucket *b, const char *name, int fd, int64_t max, struct df_err *err);
    /* version NULL: whatever is there. CONFLICT: another version is there; nothing was changed.
     * NOT_FOUND, with a version: the object is not there any more. */
    int (*put)(struct df_bucket *b, const char *name, const void *bytes, size_t n,
               const struct df_bucket_version *version, struct df_err *err);
    /* NOT_FOUND or success if it is absent. version as in put(), and never "". */
    int (*remove)(struct df_bucket *b, const char *name, const struct df_bucket_version *version,
                  struct df_err *err);
    /* The objects whose names begin with prefix, one page after the other: the next begins behind
     * *after (owned by the caller; NULL: at the start), which becomes NULL at the end. */
    int (*list)(struct df_bucket *b, const char *prefix, char **after,
                const struct df_bucket_sink *sink, struct df_err *err);
    /* The newest versions of this object, at most max (up to 1000), newest first, without marks
     * that it was deleted. None: there was no such object. NULL: the driver cannot tell, as for the
     * next. */
    int (*list_kept)(struct df_bucket *b, const char *name, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err);
    /* Appends the first n bytes of a version to out, or all of it if n is 0. NOT_FOUND. */
    int (*get_kept)(struct df_bucket *b, const char *name, const char *id, size_t n,
                    struct df_buf *out, struct df_err *err);
};

/* on_data of a request, for a driver's get(): arg is the struct df_buf of the caller. */
static inline int df_bucket_take(void *arg, const char *bytes, size_t n)
{
    return df_buf_add(arg, bytes, n);
}

/* What every driver begins with. */
struct df_bucket {
    const struct df_bucket_ops *ops;
    char *place; /* "s3://bucket/prefix", for messages; owned */
    /* remove() honours a version. Some stores that speak S3 ignore it and remove whatever is
     * there. */
    bool removes_versions;
    bool is_hasty; /* atomic; df_bucket_hasten() */
};

struct df_blob_bucket_options {
    const struct df_keyring *keys;     /* copied */
    const char *directory;             /* as of df_blob_chunked_open() */
    const struct df_blob_sizes *sizes; /* copied; NULL: those that suit a bucket */
    /* The installation whose place it shall be (bucket_owner.h); NULL: it is only read, whoever's
     * it is. */
    const char *owner;
    const char *former; /* the installation from which the owner takes the place over; or NULL */
};

/* The backend over this bucket. Takes ownership of bucket, also on failure. Sends some requests:
 * they prove that put() honours versions, and find out whether remove() does. USER if put() does
 * not, because then two writers could mix, and if the place is another installation's; else as the
 * driver fails. */
int df_blob_bucket_open(struct df_bucket *bucket, const struct df_blob_bucket_options *o,
                        struct df_blob **ret, struct df_err *err) DF_MUST_CHECK;

#endif
