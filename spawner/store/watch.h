/*
 * watch.h - tells watchers about commits, in commit order, each from its writer's thread.
 *
 * A writer draws a ticket while it still holds the store's write lock, and redeems it after the
 * commit without that lock: tickets are redeemed in the order in which they were drawn. So a
 * watcher must not write to the store, watch or unwatch, nor wait for a thread that does.
 * Thread rule: any thread.
 */
#ifndef DF_WATCH_H
#define DF_WATCH_H

#include <pthread.h>

#include "spawner/store/store.h"

struct df_watchers {
    pthread_mutex_t drawing;
    uint64_t drawn;
    pthread_mutex_t telling; /* held while watchers run; guards everything below */
    pthread_cond_t told;
    uint64_t redeemed;
    struct df_watcher {
        df_store_watcher fn;
        void *arg;
    } * list;
    size_t count, cap;
};

void df_watchers_init(struct df_watchers *w);
void df_watchers_free(struct df_watchers *w);

int df_watchers_add(struct df_watchers *w, df_store_watcher fn, void *arg,
                    struct df_err *err) DF_MUST_CHECK;
/* Waits until fn is not running. An unknown pair is fine. */
void df_watchers_remove(struct df_watchers *w, df_store_watcher fn, void *arg);

/* Every ticket must be redeemed, soon. */
uint64_t df_watchers_ticket(struct df_watchers *w);
void df_watchers_tell(struct df_watchers *w, uint64_t ticket, const struct df_store_event *event);

#endif
