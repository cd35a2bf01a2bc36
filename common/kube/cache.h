/*
 * cache.h - the watch cache: what exists of one resource type, in memory, kept true by one watch.
 *
 * Objects are reduced by their owner when they come and held packed, so that ten thousand of them
 * cost some MiB. An object's state never goes back to an older resourceVersion.
 * docs/internals/watch-cache.md tells what is indexed, what own writes do, and what a new list
 * does.
 *
 * Thread rule: any thread may read and write. changed() comes with no lock held from the watch's
 * thread, and from those that note own writes: it may read the cache.
 */
#ifndef DF_KUBE_CACHE_H
#define DF_KUBE_CACHE_H

#include "common/kube/objects.h"
#include "common/kube/watch.h"

/* What the owner finds an object by, and what of it matters. Begins as {0}. */
struct df_kube_keys {
    struct df_strs words; /* index words */
    int64_t order;        /* of creation, for lists */
    uint64_t digest;      /* of what matters: see is_noop */
};

struct df_kube_change {
    enum df_kube_change_type { DF_KUBE_ADDED, DF_KUBE_MODIFIED, DF_KUBE_DELETED } type;
    const char *name_space, *name, *version; /* borrowed during the call */
    bool is_local;                           /* an own write */
    bool is_noop;                            /* MODIFIED, but the digest stayed */
    bool is_initial; /* before the first list was whole: it may be older than this cache */
    uint64_t sequence;
};

struct df_kube_cache_options {
    const struct df_kube_resource *resource; /* borrowed, must live on */
    const char *name_space;                  /* borrowed, must live on; NULL: all */
    struct df_kube_select select;
    /* A new tree with what must be kept of the object (borrowed); NULL is out of memory. Without
     * it: all but metadata.managedFields. */
    cJSON *(*keep)(void *arg, const cJSON *object);
    /* Is the object one to keep at all, where no selector can say so? One that is not counts as not
     * there. Or NULL: all are. */
    bool (*wants)(void *arg, const cJSON *object);
    /* Fills in the keys of the object (borrowed). Or NULL: it is found by its name alone. */
    int (*keys)(void *arg, const cJSON *object, struct df_kube_keys *ret, struct df_err *err);
    /* The sequence number of a change that is not initial, drawn in the order in which the cache
     * takes the changes: be quick, it is called with the lock held. changed() gets each number
     * that was drawn. Or NULL. */
    uint64_t (*sequence)(void *arg);
    /* The object came, changed or went; read the cache for its state. Or NULL. */
    void (*changed)(void *arg, const struct df_kube_change *change);
    /* For the log: something failed and is tried again. Or NULL. */
    void (*failed)(void *arg, const struct df_err *err);
    void *arg;
    struct df_kube_watch_options watch; /* fields, without, times, page alone; all may be 0 */
};

struct df_kube_cache; /* opaque */

/* *ret is set before any callback comes, and NULL after a failure. */
int df_kube_cache_start(struct df_kube *k, const struct df_kube_cache_options *o,
                        struct df_kube_cache **ret, struct df_err *err) DF_MUST_CHECK;
/* Stops the watch and forgets all. NULL is fine. */
void df_kube_cache_stop(struct df_kube_cache *c);

/* Waits until the first list is whole. RETRY with the reason NotListedYet after timeout_ms (-1:
 * never), or when *stop turns true (within 100 ms; may be NULL); the message says what failed last.
 */
int df_kube_cache_wait(struct df_kube_cache *c, int64_t timeout_ms, const volatile bool *stop,
                       struct df_err *err) DF_MUST_CHECK;

/* df_kube_watch_list_anew() and df_kube_watch_await(): nothing that was written before the first
 * call is unknown after the second. */
uint64_t df_kube_cache_list_anew(struct df_kube_cache *c);
int df_kube_cache_await(struct df_kube_cache *c, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err) DF_MUST_CHECK;

/* ---- reading ---- */

/* What was kept of the object, the caller's; NULL when it does not exist as far as is known. */
int df_kube_cache_find(struct df_kube_cache *c, const char *name_space, const char *name,
                       cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Some object that has the index word; else as above. */
int df_kube_cache_find_by(struct df_kube_cache *c, const char *word, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Calls back with what was kept of each object that has this word (NULL: of all), in order of
 * creation. They are those of one moment; the callback may read the cache. -1 ends it. */
int df_kube_cache_each(struct df_kube_cache *c, const char *word,
                       int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                       struct df_err *err) DF_MUST_CHECK;

/* A page of what was kept of the objects that match, an array: at most `objects` of them, and fewer
 * when their text is longer than `bytes`, but one at least. *ret_last is the order of the last one,
 * 0 when no more come behind it. */
int df_kube_cache_list(struct df_kube_cache *c, const struct df_kube_query *q, size_t objects,
                       size_t bytes, cJSON **ret, int64_t *ret_last,
                       struct df_err *err) DF_MUST_CHECK;

/* How many have this word (NULL: are there). */
size_t df_kube_cache_count(struct df_kube_cache *c, const char *word);
/* Adds the names of those that have this word, in no order. */
int df_kube_cache_names(struct df_kube_cache *c, const char *word, struct df_strs *to,
                        struct df_err *err) DF_MUST_CHECK;

/* ---- own writes ---- */

/* Puts what a create, update or patch answered into the cache, so that it is not behind its owner's
 * own writes; what is older than what is known changes nothing. is_local: the change is the
 * caller's own; else it is what another wrote. The object must be one that the watch selects.
 * Outside of a write (below) an object is taken for gone, and stays so, when the watch has come as
 * far as this answer without it. A failure (no memory) costs no change: the watch brings it, too.
 * */
int df_kube_cache_note(struct df_kube_cache *c, const cJSON *object, bool is_local,
                       struct df_err *err);

/* While an object is written, from begin() to end(), what the watch says of it is held back: so it
 * is the writer who notes his own write, whichever comes first; what others did to the object
 * meanwhile becomes known at the end. */
struct df_kube_write {
    const char *name_space, *name; /* borrowed */
    cJSON *held;                   /* what the watch said last */
    bool held_is_deleted;
    struct df_kube_write *next;
};
/* Waits for the writer of this object before. */
void df_kube_cache_begin(struct df_kube_cache *c, struct df_kube_write *w, const char *name_space,
                         const char *name);
void df_kube_cache_end(struct df_kube_cache *c, struct df_kube_write *w);

/* The object, as it was last known, was deleted; only during its write. is_local: by the caller; a
 * tombstone stays until the watch says so, too. */
void df_kube_cache_note_deleted(struct df_kube_cache *c, const cJSON *object, bool is_local);

#endif
