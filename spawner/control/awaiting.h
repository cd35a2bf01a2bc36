/*
 * awaiting.h - the latest applied runs whose executor does not exist yet, or is not accepted: kubectl
 * sends the documents of one file one after the other. The pass that accepts the executor wakes them.
 *
 * In memory only, and the newest replace the oldest: a run that is missing here looks for its
 * executor by the clock alone. Thread rule: any thread.
 */
#ifndef DF_CONTROL_AWAITING_H
#define DF_CONTROL_AWAITING_H

#include <pthread.h>

#include "common/base/limits.h"
#include "spawner/control/queue.h"

struct df_awaiting {
    pthread_mutex_t lock;
    struct {
        char executor[64], run[64]; /* "": free */
    } pairs[DF_LIMIT_AWAITING];
    size_t next; /* is replaced next */
};

void df_awaiting_init(struct df_awaiting *a);
void df_awaiting_free(struct df_awaiting *a);

/* Call it before the run looks for its executor; otherwise an acceptance in between is missed. */
void df_awaiting_add(struct df_awaiting *a, const char *executor, const char *run);

/* Makes every run due that waits for this executor, and forgets them. */
void df_awaiting_wake(struct df_awaiting *a, const char *executor, struct df_queue *q);

#endif
