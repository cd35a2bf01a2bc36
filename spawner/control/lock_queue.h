/*
 * lock_queue.h - documents that wait for the same lock, in the order of their creation: the runs of
 * an executor, the workflows on a target. The label DF_LABEL_QUEUE of each one names the lock; it
 * is the turn of the first one. A document that ends loses the label. Thread rule: any thread.
 */
#ifndef DF_LOCK_QUEUE_H
#define DF_LOCK_QUEUE_H

#include "spawner/control/queue.h"
#include "spawner/store/store.h"

/* ret: the name of the first document in the queue for `lock`; "" if there is none. */
int df_lock_queue_first(struct df_store *s, enum df_kind kind, const char *lock, char ret[64],
                        struct df_err *err) DF_MUST_CHECK;

/* Queues all documents of this lock for a pass. A failure is logged. */
void df_lock_queue_wake(struct df_store *s, struct df_queue *q, enum df_kind kind,
                        const char *lock);

#endif
