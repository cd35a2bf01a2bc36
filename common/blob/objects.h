/*
 * objects.h - what an object store must do for blobs to lie in it: five operations. Internal to
 * common/blob.
 *
 * A store keeps heads, each under the key of its blob, and chunks, each under its own name
 * (head.h). chunked.h makes blobs of them, whichever store it is. Where the members of a head lie,
 * in annotations, in user metadata or in front of the tail, is the store's own matter. What was put
 * is durable, and seen by every later call of any process.
 *
 * Failures are those of the store's own protocol, and:
 *   NOT_FOUND  there is no such object
 *   CONFLICT   the precondition does not hold: nothing was changed. No other failure is one
 *   RETRY      no answer: what was asked for may have been done
 *   SYSTEM     the object is damaged
 * Thread rule: any thread.
 */
#ifndef DF_BLOB_OBJECTS_H
#define DF_BLOB_OBJECTS_H

#include "common/blob/head.h"

struct df_objects;

enum df_object_kind { DF_OBJECT_HEAD, DF_OBJECT_CHUNK };

struct df_object_chunk {
    const char *id;
    const void *bytes;
    size_t n;
};

/* Takes a list as it comes. Both may end the list by returning -1 with err. */
struct df_object_sink {
    /* A list begins. It may begin again half way: what was given before counts no more. */
    void (*begin)(void *arg);
    /* name: of a head the key of its blob. made_us: the store's clock. chunks: of a head the names
     * of its chunks, else empty. All borrowed. */
    int (*item)(void *arg, const char *name, int64_t made_us, const struct df_strs *chunks,
                struct df_err *err);
    void *arg;
};

struct df_object_ops {
    void (*close)(struct df_objects *o);

    /* Fills in h, a new head (df_blob_head_new). An absent one is an answer: h stays as it is.
     * whole: with tail and seal, all of one moment; else the description alone. */
    int (*head)(struct df_objects *o, bool whole, struct df_blob_head *h, struct df_err *err);

    /* Adds n bytes of a chunk, from offset on, to out. They are there: h says so. */
    int (*get)(struct df_objects *o, const struct df_blob_head *h, const char *id, int64_t offset,
               size_t n, struct df_buf *out, struct df_err *err);

    /* A chunk of h, which must be new; or (chunk NULL) h itself, if it still is what h->version
     * says: compare and swap. */
    int (*put)(struct df_objects *o, const struct df_blob_head *h,
               const struct df_object_chunk *chunk, struct df_err *err);

    /* The chunk of this name, as a list gives it; or (chunk NULL) h itself, if it still is what
     * h->version says. */
    int (*remove)(struct df_objects *o, const struct df_blob_head *h, const char *chunk,
                  struct df_err *err);

    /* All heads whose keys lie below a prefix ("": all) and perhaps others, or all chunks. */
    int (*list)(struct df_objects *o, enum df_object_kind kind, const char *prefix,
                const struct df_object_sink *sink, struct df_err *err);
};

/* What every store begins with. */
struct df_objects {
    const struct df_object_ops *ops;
    struct df_blob_sizes sizes;
};

#endif
