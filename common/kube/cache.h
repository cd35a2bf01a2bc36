/*
 * cache.h - the watch cache: the objects of one resource type in memory, kept up to date by one
 * watch.
 *
 * The owner may reduce objects when they arrive. The ones used last are kept as trees, all others
 * packed, so that ten thousand of them take a few MiB. An object never goes back to an older
 * resourceVersion. docs/internals/watch-cache.md explains the indexes, local writes, and the effect
 * of a new list.
 *
 * Thread rule: any thread may read and write. changed() is called without a lock, from the watch's
 * thread and from threads that note local writes; it may read the cache.
 */
#ifndef DF_KUBE_CACHE_H
#define DF_KUBE_CACHE_H

#include "common/kube/objects.h"
#include "common/kube/watch.h"

/* The keys of an object, and a digest of what matters to the owner. Initialize with {0}. */
struct df_kube_keys {
    struct df_strs words; /* index words */
    int64_t order;        /* creation order, for lists */
    uint64_t digest;      /* digest of the relevant content: see is_noop */
};

/* A digest of the object without its annotations, managedFields and resourceVersion. */
uint64_t df_kube_content_hash(const cJSON *object);

struct df_kube_change {
    enum df_kube_change_type { DF_KUBE_ADDED, DF_KUBE_MODIFIED, DF_KUBE_DELETED } type;
    const char *name_space, *name, *version; /* borrowed during the call */
    bool is_local;                           /* a local write */
    bool is_noop;                            /* MODIFIED, but the digest is unchanged */
    bool is_initial;     /* before the end of the first list: may be older than this cache */
    const cJSON *object; /* as it is kept, borrowed during the call; NULL: DELETED */
    uint64_t sequence;
};

struct df_kube_cache_options {
    const struct df_kube_resource *resource; /* borrowed, must live on */
    const char *name_space;                  /* borrowed, must live on; NULL: all */
    struct df_kube_select select;
    /* A new tree with what must be kept of the object (borrowed); NULL is out of memory. Without
     * it: all but metadata.managedFields. */
    cJSON *(*keep)(void *arg, const cJSON *object);
    /* Changes a copy of the object as it is kept into what df_kube_cache_show() gives. A pure
     * function: it is called once for a version, or for each read. Or NULL. */
    df_cached_show show;
    /* Is the object one to keep at all, where no selector can say so? One that is not counts as not
     * there. Or NULL: all are. */
    bool (*wants)(void *arg, const cJSON *object);
    /* Fills in the keys of the object (borrowed) as it is kept. Or NULL: it is found by its name
     * alone. */
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
/* Stops the watch and frees the cache. NULL is fine. */
void df_kube_cache_stop(struct df_kube_cache *c);

/* Waits until the first list is complete. RETRY NotListedYet after timeout_ms (-1: no limit), or
 * when *stop becomes true (within 100 ms; may be NULL). The message contains the last failure. */
int df_kube_cache_wait(struct df_kube_cache *c, int64_t timeout_ms, const volatile bool *stop,
                       struct df_err *err) DF_MUST_CHECK;

/* Like df_kube_watch_list_anew() and df_kube_watch_await(): after the second call, the cache
 * contains everything written before the first. */
uint64_t df_kube_cache_list_anew(struct df_kube_cache *c);
int df_kube_cache_await(struct df_kube_cache *c, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err) DF_MUST_CHECK;

/* ---- reading ---- */

/* A reference to the cached object as it is kept (df_shared_drop); *ret is NULL if it does not
 * exist in the cache. */
int df_kube_cache_find(struct df_kube_cache *c, const char *name_space, const char *name,
                       const cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* The same as the owner's show() makes it, which there must be. */
int df_kube_cache_show(struct df_kube_cache *c, const char *name_space, const char *name,
                       const cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Shows any object with this index word; otherwise as above. */
int df_kube_cache_show_by(struct df_kube_cache *c, const char *word, const cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Calls back with each cached object that has this word (NULL: all), in order of creation, as of
 * one moment. `kept` is shared: df_shared_add() to keep it. The callback may read the cache; -1
 * ends the enumeration. */
int df_kube_cache_each(struct df_kube_cache *c, const char *word,
                       int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                       struct df_err *err) DF_MUST_CHECK;

/* Returns a page of the matching objects as an array: at most `objects`, and fewer if their text
 * exceeds `bytes` (the length of those kept as trees is estimated), but at least one. *ret_last is
 * the order of the last one, 0 if no more follow.
 */
int df_kube_cache_list(struct df_kube_cache *c, const struct df_kube_query *q, size_t objects,
                       size_t bytes, cJSON **ret, int64_t *ret_last,
                       struct df_err *err) DF_MUST_CHECK;

/* Counts the objects with this word (NULL: all). */
size_t df_kube_cache_count(struct df_kube_cache *c, const char *word);
/* Adds the names of the objects with this word, in no order. */
int df_kube_cache_names(struct df_kube_cache *c, const char *word, struct df_strs *to,
                        struct df_err *err) DF_MUST_CHECK;

/* ---- own writes ---- */

/* Stores the answer to a create, update or patch, so that the owner reads its own writes. An older
 * version than the cached one changes nothing. is_local: the caller changed the object; otherwise
 * the answer shows somebody else's write. The watch must select the object. Outside of a write
 * (below) an object counts as deleted if the watch has already passed this version without it. A
 * failure (out of memory) loses nothing: the watch delivers the change, too. */
int df_kube_cache_note(struct df_kube_cache *c, const cJSON *object, bool is_local,
                       struct df_err *err);
/* The same, but takes the object over, also on failure. */
int df_kube_cache_note_own(struct df_kube_cache *c, cJSON *object, bool is_local,
                           struct df_err *err);

/* While an object is being written, from begin() to end(), events of the watch for it are held
 * back: so the writer notes its own write, whichever arrives first. Changes by others are applied
 * at the end. */
struct df_kube_write {
    const char *name_space, *name; /* borrowed */
    cJSON *held;                   /* the last held event */
    bool held_is_deleted;
    struct df_kube_write *next;
};
/* Waits for an earlier writer of this object. */
void df_kube_cache_begin(struct df_kube_cache *c, struct df_kube_write *w, const char *name_space,
                         const char *name);
void df_kube_cache_end(struct df_kube_cache *c, struct df_kube_write *w);

/* Notes that the object was deleted; only during its write. is_local: deleted by the caller; then a
 * tombstone stays until the watch reports the deletion, too. */
void df_kube_cache_note_deleted(struct df_kube_cache *c, const cJSON *object, bool is_local);

#endif
