/*
 * watch.h - reports every change of a resource type: one list, then one watch, whatever network and
 * API server do.
 *
 * A thread lists in pages, then watches with bookmarks from the version of the list. A stream that
 * ends or breaks off continues from the last resourceVersion that came. When the server no longer
 * has that version (410), the thread lists again. After a failure it tries again with a back-off
 * and jitter, never sooner than Retry-After. A list that is older than what came before (a lagging
 * API server) is discarded and requested again. A stream without any data, bookmarks included, is
 * replaced.
 *
 * Callbacks come from the watch's thread, one at a time. They may be slow: the server keeps what
 * follows. They must not stop their own watch.
 */
#ifndef DF_KUBE_WATCH_H
#define DF_KUBE_WATCH_H

#include "common/kube/kube.h"
#include "common/kube/proto.h"

struct df_kube_watcher {
    /* A list of this resourceVersion begins: apply() follows for each object of it, then listed().
     * If begin() comes again before listed(), the list before was incomplete. -1: as of apply(). */
    int (*begin)(void *arg, const char *version, struct df_err *err);
    /* The object exists in this state (without the members in `without`). The receiver may take it
     * over, and then sets *object to NULL. -1: the receiver failed; the watch lists again after a
     * back-off. */
    int (*apply)(void *arg, cJSON **object, struct df_err *err);
    /* The object was deleted; this was its last state. It may be taken over, too. */
    void (*remove)(void *arg, cJSON **object);
    /* The list is complete: an object that was not applied since begin() does not exist. */
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
    /* Reads only the fields of this table (borrowed, must live on), as protobuf, which costs the
     * API server least; lists come in one page. NULL: all fields, as JSON. */
    const struct df_proto_field *fields;
    /* As of struct df_kube_sink, in an event ".object." for ".items."; must live on. NULL:
     * managedFields. */
    const char *const *without;
    unsigned page;          /* objects of one page of the list; 0: DF_KUBE_PAGE */
    int timeout_s;          /* the server ends a stream after about this long; 0: 300 */
    int64_t idle_ms;        /* a stream without data for this long is replaced; 0: 150000
                               (bookmarks come once a minute) */
    int64_t backoff_min_ms; /* 0: 200 */
    int64_t backoff_max_ms; /* 0: 10000 */
};

struct df_kube_watch; /* opaque */

/* The client must live on. Strings are copied. Needs no answer of the server. */
int df_kube_watch_start(struct df_kube *k, const struct df_kube_watch_options *o,
                        struct df_kube_watch **ret, struct df_err *err) DF_MUST_CHECK;
/* Interrupts the watch, also a pause, and makes it list again. Returns a ticket:
 * df_kube_watch_await() blocks until a list that began after this call is complete. */
uint64_t df_kube_watch_list_anew(struct df_kube_watch *w);
/* Has no timeout: it also waits while the server does not answer. RETRY when *stop turns true
 * (within 100 ms). Not from the watch's own callbacks. */
int df_kube_watch_await(struct df_kube_watch *w, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err) DF_MUST_CHECK;

/* Ends the thread at once, also in a blocking read, and frees. No callback comes after the return.
 * NULL is fine. */
void df_kube_watch_stop(struct df_kube_watch *w);

/* True if version b is older than a. False unless both are numbers, as every API server's are. */
bool df_kube_version_is_older(const char *b, const char *a);

#endif
