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

/* Sleeps until a key is due and hands it out. False: the queue is closed, the worker goes home. */
bool df_queue_get(struct df_queue *q, struct df_queue_key *ret);

/* The worker's last word about a key that it got: failed asks for another pass after the back-off,
 * success forgets earlier failures. */
void df_queue_done(struct df_queue *q, const struct df_queue_key *key, bool failed);

/* Is nothing due, and no worker busy? */
bool df_queue_is_idle(struct df_queue *q);

/* Wakes every worker; nothing is handed out any more. */
void df_queue_close(struct df_queue *q);

#endif
