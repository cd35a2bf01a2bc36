/*
 * queue.h - the keys that wait for a worker.
 *
 * A key (kind and name of a document) is in the queue once, however often it is added. One worker
 * at a time has it; a key that is added while a worker has it is given to a worker once more
 * afterwards. A pass that failed is repeated after a delay that doubles with every failure in a
 * row, with jitter. Keys are given to workers in the order of their due times. Thread rule: any
 * thread.
 */
#ifndef DF_QUEUE_H
#define DF_QUEUE_H

#include "spawner/model/model.h"

#define DF_QUEUE_BACKOFF_MIN_US 10000    /* after the first failure */
#define DF_QUEUE_BACKOFF_MAX_US 30000000 /* never longer than this */

struct df_queue; /* opaque */

struct df_queue_key {
    enum df_kind kind;
    char name[64];
};

int df_queue_new(struct df_queue **ret, struct df_err *err) DF_MUST_CHECK;
/* Call it when no thread uses the queue any more. NULL is fine. */
void df_queue_free(struct df_queue *q);

/* Makes the key due in delay_us; a key that already waits keeps the earlier of both times. The only
 * possible failure is out of memory. After df_queue_close() the call does nothing. */
int df_queue_add(struct df_queue *q, enum df_kind kind, const char *name, int64_t delay_us,
                 struct df_err *err) DF_MUST_CHECK;

/* Makes the key due now. A wake that fails for lack of memory is recorded: df_queue_missed(). */
void df_queue_wake(struct df_queue *q, enum df_kind kind, const char *name);
/* The calling thread has written this document: makes the key due now. If the caller is the worker
 * that has the key, df_queue_done() decides instead whether another pass follows. */
void df_queue_changed(struct df_queue *q, enum df_kind kind, const char *name);
/* Records that a wake was lost. */
void df_queue_miss(struct df_queue *q);
/* True if a wake was lost since the last call. The caller then adds every unfinished document
 * again. */
bool df_queue_missed(struct df_queue *q);

/* Blocks until a key is due and gives it to the caller. False: the queue is closed. */
bool df_queue_get(struct df_queue *q, struct df_queue_key *ret);

#define DF_QUEUE_PAUSE 1

/* Ends a pass over a key. result: 0: if the worker has written the document, another pass follows;
 * DF_QUEUE_PAUSE: the worker's own write causes no pass; -1: the next pass comes after the
 * back-off. 0 and DF_QUEUE_PAUSE reset the back-off. A key that was added meanwhile is due at the
 * requested time at the latest, whatever the result. */
void df_queue_done(struct df_queue *q, const struct df_queue_key *key, int result);

/* True if no key is due and no worker has one. */
bool df_queue_is_idle(struct df_queue *q);

/* Wakes every worker; no key is given out any more. */
void df_queue_close(struct df_queue *q);

#endif
