/*
 * objects.h - the five operations of an object store that can hold blobs. Internal to common/blob.
 *
 * A store keeps heads, each under the key of its blob, and chunks, each under its own name
 * (head.h). chunked.h builds blobs of them, for any store. The store decides where it keeps the
 * members of a head: in annotations, in user metadata or before the tail. An object that was put is
 * durable, and every later call of any process sees it.
 *
 * Failures are those of the store's own protocol, and:
 *   NOT_FOUND  there is no such object
 *   CONFLICT   the precondition does not hold, and nothing was changed; only then
 *   RETRY      no answer: the request may have been executed. With the reason DF_OBJECT_OVERTAKEN:
 *              a put of a head of which that is so, and now another one is there: either ours never
 *              was, or somebody replaced it, and removed its chunks
 *   SYSTEM     the object is damaged
 * Thread rule: any thread.
 */
#ifndef DF_BLOB_OBJECTS_H
#define DF_BLOB_OBJECTS_H

#include "common/base/limits.h"
#include "common/blob/head.h"

struct df_objects;

#define DF_OBJECT_OVERTAKEN "Overtaken"

enum df_object_kind { DF_OBJECT_HEAD, DF_OBJECT_CHUNK };

/* Memory of one thread for the chunks that it puts or gets one after the other: fresh pages for
 * each of them cost more than what is done with them. Wiped at the end. */
struct df_object_work {
    struct df_buf plain, sealed;
};
#define DF_OBJECT_WORK_INIT                                                                        \
    ((struct df_object_work){DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT),                                  \
                             DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT)})
static inline void df_object_work_free(struct df_object_work *w)
{
    df_buf_wipe(&w->plain);
    df_buf_wipe(&w->sealed);
}
#define DF_OBJECT_WORK DF_CLEANUP(df_object_work_free) struct df_object_work

struct df_object_chunk {
    const char *id;
    const void *bytes; /* perhaps of work->plain */
    size_t n;
    struct df_object_work *work;
};

struct df_object_item {
    const char *name; /* for a head the key of its blob */
    int64_t made_us;  /* by the store's clock */
    int64_t size;     /* of the object, or of a head in a store that `tells_sizes` of its blob */
    /* Why a head whose chunks are wanted does not open. NULL: it does. Borrowed. */
    const struct df_err *damage;
};

/* A part of a chunk. */
struct df_object_range {
    const char *id;
    int64_t offset;
    size_t n;
};

/* Receives a list item by item. item() may end it by returning -1 with err. */
struct df_object_sink {
    /* A list begins. It may begin again before its end: forget the items that came before. */
    void (*begin)(void *arg);
    /* chunks: for a head whose chunks are wanted their names, or for one that does not open its own
     * name (head.h), which stands for all that begin with it; else empty. All borrowed. */
    int (*item)(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                struct df_err *err);
    /* Which heads' chunks are wanted, by the name of the head (head.h); NULL: none. A store that
     * has them at hand may ignore it and give them all. */
    bool (*wants_chunks)(void *arg, const char *head);
    void *arg;
};

struct df_object_ops {
    void (*close)(struct df_objects *o);
    /* What is repeated after a failure is not repeated any more. NULL: the store repeats
     * nothing. */
    void (*hasten)(struct df_objects *o);

    /* As df_blob_check_owner(); NULL: nobody can take the place over. */
    int (*check_owner)(struct df_objects *o, bool at_once, struct df_err *err);

    /* Fills in h, a new head (df_blob_head_new). Absent is success: h stays as it is. whole: with
     * tail and seal, all of one moment; else the description alone. */
    int (*head)(struct df_objects *o, bool whole, struct df_blob_head *h, struct df_err *err);

    /* Appends the bytes of a range to out, which may be work->plain. h says that they exist. */
    int (*get)(struct df_objects *o, const struct df_blob_head *h, const struct df_object_range *r,
               struct df_object_work *work, struct df_buf *out, struct df_err *err);

    /* Puts a new chunk of h; or (chunk NULL) h itself, if its version still is h->version: compare
     * and swap. A store that `tells_versions` then sets h->version to the new one. */
    int (*put)(struct df_objects *o, struct df_blob_head *h, const struct df_object_chunk *chunk,
               struct df_err *err);

    /* Removes the chunk of this name, as list() gives it; or (chunk NULL) h itself, if its version
     * still is h->version. */
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
    bool tells_sizes;    /* a list of heads has the sizes of the blobs */
    bool tells_versions; /* a put of a head sets its version */
};

#endif
