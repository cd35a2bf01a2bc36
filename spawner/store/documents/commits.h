/*
 * commits.h - group commit: one thread runs the write bodies of all waiting threads in one
 * transaction, so that they wait for the disk once.
 *
 * A body that fails is rolled back alone; the other writes of the batch remain. Thread rule: any
 * thread.
 */
#ifndef DF_COMMITS_H
#define DF_COMMITS_H

#include <pthread.h>

#include "spawner/store/documents/database.h"
#include "spawner/store/documents/watchers.h"

struct df_commit; /* one write */

struct df_commits {
    struct df_db *db; /* borrowed; used by the thread that runs a batch */
    struct df_watchers *watchers;
    pthread_mutex_t lock;
    struct df_commit *first, **end; /* the next batch */
    size_t waiting;                 /* number of writes in it */
    bool running;                   /* a batch is being written */
    int64_t join_us;                /* so long waits a write that joins; tests change it */
};

void df_commits_init(struct df_commits *c, struct df_db *db, struct df_watchers *watchers);
void df_commits_free(struct df_commits *c);

/* Like df_db_transaction(), but body may run in another thread. Returns when the write is durable.
 * ret_sequence (may be NULL): set if the result is 0; the caller must notify the watchers with this
 * number. The numbers are in the order of the bodies. */
int df_commits_run(struct df_commits *c, df_db_body body, void *arg, uint64_t *ret_sequence,
                   struct df_err *err) DF_MUST_CHECK;

/* The same for a write that is soon followed by another thread's: it waits for that a moment, so
 * that both wait for the disk once. */
int df_commits_join(struct df_commits *c, df_db_body body, void *arg,
                    struct df_err *err) DF_MUST_CHECK;

#endif
