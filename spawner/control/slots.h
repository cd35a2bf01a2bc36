/*
 * slots.h - concurrency slots for live steps (limits.*).
 *
 * Labels of the documents say which steps have a slot; the store counts them each time. The waiting
 * steps are kept in memory, in the order of model/admission.h; after a restart they are found again
 * in the documents. These functions write no document: df_slots_acquire() grants a slot, the caller
 * sets the labels in the same write that makes the step live, and then calls df_slots_unreserve(),
 * also if that write failed. Between the two calls the slot is reserved: the step counts as live,
 * and no lock is held. See docs/internals/slots.md. Thread rule: any thread.
 */
#ifndef DF_CONTROL_SLOTS_H
#define DF_CONTROL_SLOTS_H

#include <pthread.h>

#include "spawner/control/queue.h"
#include "spawner/model/admission.h"
#include "spawner/spawner.h"

struct df_metric;

struct df_slots {
    struct df_spawner *s;
    struct df_queue *queue; /* to wake steps that may start */
    pthread_mutex_t lock;   /* guards the rest */
    struct df_admission waiting;
    struct df_admission_step **reserved; /* granted, but not in the store yet */
    size_t reserved_count;
    struct df_metric *waits; /* number of waiting steps */
};

/* All zero before. queue: borrowed. */
int df_slots_init(struct df_slots *l, struct df_spawner *s, struct df_queue *queue,
                  struct df_err *err) DF_MUST_CHECK;
void df_slots_free(struct df_slots *l);

/* ---- the labels of a document in memory ---- */

int df_slot_set(cJSON *task, struct df_err *err) DF_MUST_CHECK;
int df_slot_clear(cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* ---- acquire ---- */

struct df_slot {
    struct df_admission_step *entry; /* granted to this step; NULL: it had one, or is refused */
    int64_t wake_us;                 /* refused: real time of the next attempt; or 0 */
    char message[256];               /* refused: why */
    char
        holder[64]; /* refused: the workflow that holds its target, which it does not wait for here;
                        or "" */
};

/* Asks for a slot, unless the step has one. A refused step waits here and is woken when its turn
 * comes. A workflow with a slot holds its target: none other gets one before it has given it back,
 * whatever engines they have and whatever their order in the queue of the target (lock_queue.h). */
int df_slots_acquire(struct df_slots *l, const cJSON *task, struct df_slot *ret,
                     struct df_err *err) DF_MUST_CHECK;
/* The same for a step that is not stored yet, if a slot is free and nobody waits for it. Otherwise
 * it gets none and does not wait here: ret->entry is NULL. */
int df_slots_acquire_free(struct df_slots *l, const cJSON *task, struct df_slot *ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Call after the write that follows a grant, also if it failed: its labels count from now on, the
 * reservation no longer does. */
void df_slots_unreserve(struct df_slots *l, struct df_slot *slot);

/* ---- the waiting steps ---- */

/* Call it after steps have released their slots: wakes the waiting steps that may start now. */
void df_slots_wake(struct df_slots *l);

/* Called at the start of the control loop: if this unfinished step waits for a slot, it is queued
 * here, before steps that come later. */
int df_slots_enqueue(struct df_slots *l, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* How many steps of this class wait for a slot. class_name: NULL: without a class. */
int64_t df_slots_waiting(struct df_slots *l, const char *class_name);

/* How many steps more than those that have a slot may run under all limits of this one: 0 if others
 * wait for one of these limits. */
int df_slots_room(struct df_slots *l, const cJSON *task, int64_t *ret,
                  struct df_err *err) DF_MUST_CHECK;

/* Removes the step from the queue, if it is there. */
void df_slots_dequeue(struct df_slots *l, const char *name);

#endif
