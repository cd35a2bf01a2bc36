/*
 * cache.h - what exists of one resource type, in memory, kept true by one watch.
 *
 * Objects are reduced by their owner when they come and held packed, so that ten thousand
 * of them cost some MiB. An object's state never goes back to an older resourceVersion.
 *
 * Thread rule: any thread may read. Callbacks come from the watch's thread (and that of note())
 * with no lock held: they may read the cache.
 */
#ifndef DF_KUBE_CACHE_H
#define DF_KUBE_CACHE_H

#include "common/kube/watch.h"

struct df_kube_cache_options {
    const struct df_kube_resource *resource; /* borrowed, must live on */
    const char *name_space;                  /* NULL: all */
    struct df_kube_select select;
    /* A new tree with what must be kept of the object (borrowed); NULL is out of memory. Without
     * it: all but metadata.managedFields. */
    cJSON *(*keep)(void *arg, const cJSON *object);
    /* Is the object one to keep at all, where no selector can say so? One that is not counts as not
     * there. Or NULL: all are. */
    bool (*wants)(void *arg, const cJSON *object);
    /* A word under which each() finds the object, as the name of the Job a pod belongs to. Borrowed
     * from the object; NULL: none. Or NULL. */
    const char *(*index)(void *arg, const cJSON *object);
    /* The object came, changed or went; read the cache for its state. Or NULL. */
    void (*changed)(void *arg, const char *name_space, const char *name);
    /* As of df_kube_watcher. Or NULL. */
    void (*failed)(void *arg, const struct df_err *err);
    void *arg;
    struct df_kube_watch_options watch; /* fields, without, times, page alone; all may be 0 */
};

struct df_kube_cache; /* opaque */

/* *ret is set before anything is told, and NULL after a failure. */
int df_kube_cache_start(struct df_kube *k, const struct df_kube_cache_options *o,
                        struct df_kube_cache **ret, struct df_err *err) DF_MUST_CHECK;
/* Stops the watch and forgets all. NULL is fine. */
void df_kube_cache_stop(struct df_kube_cache *c);

/* Waits until the first list is whole. RETRY with the reason NotListedYet after timeout_ms (-1:
 * never), or when *stop turns true (within 100 ms; may be NULL); the message says what failed last.
 */
int df_kube_cache_wait(struct df_kube_cache *c, int64_t timeout_ms, const volatile bool *stop,
                       struct df_err *err) DF_MUST_CHECK;

/* What was kept of the object; the caller owns *ret. NOT_FOUND when it does not exist as far as is
 * known. */
int df_kube_cache_get(struct df_kube_cache *c, const char *name_space, const char *name,
                      cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Puts what a create, update or patch answered into the cache, so that it is not behind its owner's
 * own writes; what the watch has told is newer and stays. The object must be one that the watch
 * selects. changed() comes from here then. */
int df_kube_cache_note(struct df_kube_cache *c, const cJSON *object,
                       struct df_err *err) DF_MUST_CHECK;

/* Calls back with what was kept of each object of this index word (NULL: of all), in no order. They
 * are those of one moment; the callback may read the cache. -1 ends it. */
int df_kube_cache_each(struct df_kube_cache *c, const char *index,
                       int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                       struct df_err *err) DF_MUST_CHECK;

size_t df_kube_cache_count(struct df_kube_cache *c);

#endif
