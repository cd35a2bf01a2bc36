/*
 * watchers.h - notifies watchers of commits, in the order of the commits, each from its writer's
 * thread.
 *
 * A writer draws a sequence number while it holds the store's write lock. After the commit, without
 * that lock, it notifies the watchers with that number. Notifications run in the order of the
 * numbers. So a watcher must not write to the store, watch or unwatch, nor wait for a thread that
 * does.
 * Thread rule: any thread.
 */
#ifndef DF_WATCHERS_H
#define DF_WATCHERS_H

#include <pthread.h>

#include "spawner/store/store.h"

struct df_watchers {
    pthread_mutex_t drawing; /* guards `drawn` */
    uint64_t drawn;
    pthread_mutex_t notifying; /* held while watchers run; guards everything below */
    pthread_cond_t notified;
    uint64_t next; /* the number whose notification is due */
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

/* Call df_watchers_notify() soon with each number that was drawn: later numbers wait for it. */
uint64_t df_watchers_draw(struct df_watchers *w);
void df_watchers_notify(struct df_watchers *w, uint64_t sequence,
                        const struct df_store_event *event);

#endif
