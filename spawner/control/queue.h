/*
 * queue.h - the keys that wait for a worker.
 *
 * A key (kind and name of a document) is in the queue once, however often it is added; it is given
 * to one worker at a time, and what is added while a worker has it is given out once more
 * afterwards. A pass that failed is repeated after a time that doubles with every failure in a row,
 * with jitter. Keys that are due are given out in the order of their due times. Thread rule: any
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
/* No thread may be inside any more. NULL is fine. */
void df_queue_free(struct df_queue *q);

/* Due delay_us from now; a key that waits already keeps the earlier of both times. Fails on no
 * memory alone. After df_queue_close() it does nothing. */
int df_queue_add(struct df_queue *q, enum df_kind kind, const char *name, int64_t delay_us,
                 struct df_err *err) DF_MUST_CHECK;

/* Due now. What finds no memory is remembered: df_queue_missed(). */
void df_queue_wake(struct df_queue *q, enum df_kind kind, const char *name);
/* The calling thread has written this document: due now, unless the caller is the worker that has
 * the key, whose df_queue_done() decides. */
void df_queue_changed(struct df_queue *q, enum df_kind kind, const char *name);
/* A wake was lost. */
void df_queue_miss(struct df_queue *q);
/* Was a wake lost since the last call? Then whatever is unfinished must be added anew. */
bool df_queue_missed(struct df_queue *q);

/* Sleeps until a key is due and hands it out. False: the queue is closed, the worker goes home. */
bool df_queue_get(struct df_queue *q, struct df_queue_key *ret);

#define DF_QUEUE_PAUSE 1

/* The end of a pass over a key. result: 0, and what the worker wrote into the document itself is a
 * reason for another pass; DF_QUEUE_PAUSE, and it is none; -1, and the next pass comes after the
 * back-off. Success and pause forget earlier failures. In each case what others added while the
 * worker had the key makes it due. */
void df_queue_done(struct df_queue *q, const struct df_queue_key *key, int result);

/* Is nothing due, and no worker busy? */
bool df_queue_is_idle(struct df_queue *q);

/* Wakes every worker; nothing is handed out any more. */
void df_queue_close(struct df_queue *q);

#endif
