/*
 * commits.h - what several threads write at the same time is made durable at once: one of them runs
 * the bodies of all in one transaction, and the disk is waited for once.
 *
 * A body that fails takes back what it wrote and nothing of the others'. Thread rule: any thread.
 */
#ifndef DF_COMMITS_H
#define DF_COMMITS_H

#include <pthread.h>

#include "spawner/store/documents/database.h"
#include "spawner/store/documents/watchers.h"

struct df_commit; /* one write */

struct df_commits {
    struct df_db *db; /* borrowed; of whoever runs a batch */
    struct df_watchers *watchers;
    pthread_mutex_t lock;
    struct df_commit *first, **end; /* of the next batch */
    size_t waiting;                 /* its writes */
    bool running;                   /* a batch is with the disk */
};

void df_commits_init(struct df_commits *c, struct df_db *db, struct df_watchers *watchers);
void df_commits_free(struct df_commits *c);

/* Runs body in a write transaction, perhaps in another thread, and returns when that is durable:
 * as df_db_transaction(). ret_sequence (may be NULL): after a 0 the number with which to notify
 * the watchers; the numbers are in the order of the bodies. */
int df_commits_run(struct df_commits *c, df_db_body body, void *arg, uint64_t *ret_sequence,
                   struct df_err *err) DF_MUST_CHECK;

#endif
