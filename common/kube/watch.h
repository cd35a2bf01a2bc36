/*
 * watch.h - every change of a resource type, from one list and one watch that live on through
 * everything the network and the API server do.
 *
 * A thread lists in pages, then watches with bookmarks from where the list was. A stream that ends
 * or breaks off, anywhere, is taken up from the last resourceVersion that was seen. When the server
 * has forgotten that one (410) the thread lists once more. A server that is away is asked again
 * after a back-off with jitter, never sooner than its Retry-After. A list older than what was seen
 * (a lagging API server) is refused and asked for again. A stream on which nothing moves, not even
 * a bookmark, is replaced.
 *
 * Callbacks come from the watch's thread, one at a time. They may be slow: the server keeps the
 * rest. They must not stop the watch they come from.
 */
#ifndef DF_KUBE_WATCH_H
#define DF_KUBE_WATCH_H

#include "common/kube/kube.h"
#include "common/kube/proto.h"

/* Who wrote which field: half of an object's text, and wanted by nobody here. */
#define DF_KUBE_MANAGED "managedFields"

struct df_kube_watcher {
    /* A list as of this resourceVersion begins, perhaps again: every object that existed then
     * follows through apply(), then comes listed(). What was applied since the last begin() of a
     * list that never got so far is not all there is. -1: as of apply(). */
    int (*begin)(void *arg, const char *version, struct df_err *err);
    /* The object is there in this state (borrowed; without what is left out). -1: it could not be
     * taken; the watch lists anew after a back-off. */
    int (*apply)(void *arg, const cJSON *object, struct df_err *err);
    /* The object was deleted; this was its last state. */
    void (*remove)(void *arg, const cJSON *object);
    /* All is told: what was not applied since begin() is gone. */
    void (*listed)(void *arg);
    /* For the log: something failed and is tried again. Or NULL. */
    void (*failed)(void *arg, const struct df_err *err);
    void *arg;
};

struct df_kube_watch_options {
    const struct df_kube_resource *resource; /* borrowed, must live on */
    const char *name_space;                  /* NULL: all */
    struct df_kube_select select;
    struct df_kube_watcher to;
    /* Reads of each object what is in this table, which must live on, and has it told in the form
     * that costs the API server least; lists come whole. NULL: all, as JSON. */
    const struct df_proto_field *fields;
    const char *const *without; /* as of struct df_kube_sink; must live on; NULL: managedFields */
    unsigned page;              /* objects of one page of the list; 0: DF_KUBE_PAGE */
    int timeout_s;              /* the server ends a stream after about this long; 0: 300 */
    int64_t idle_ms;        /* a stream silent for so long is replaced; 0: 150000 (bookmarks come
                               once a minute) */
    int64_t backoff_min_ms; /* 0: 200 */
    int64_t backoff_max_ms; /* 0: 10000 */
};

struct df_kube_watch; /* opaque */

/* The client must live on. Strings are copied. Fails only on what needs no server. */
int df_kube_watch_start(struct df_kube *k, const struct df_kube_watch_options *o,
                        struct df_kube_watch **ret, struct df_err *err) DF_MUST_CHECK;
/* Breaks off what the watch does now, a rest, too, and makes it list; await() of the ticket that is
 * returned waits until that list, which began after this call, is told whole. */
uint64_t df_kube_watch_list_anew(struct df_kube_watch *w);
/* However long it takes, as long as the server is away, too. RETRY when *stop turns true (within
 * 100 ms). Not from the watch's own callbacks. */
int df_kube_watch_await(struct df_kube_watch *w, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err) DF_MUST_CHECK;

/* Ends the thread at once, also out of a read that waits, and frees. After it returns no callback
 * comes. NULL is fine. */
void df_kube_watch_stop(struct df_kube_watch *w);

/* Is version b older than a? Only where both are numbers, as every API server's are. */
bool df_kube_version_is_older(const char *b, const char *a);

#endif
