/*
 * slots.h - concurrency slots for living steps (limits.*): who gets one, and who waits.
 *
 * Who has a slot is written in the documents, by labels, which the store counts each time. Who
 * waits is kept here, in the order of model/admission.h; a start finds it in the documents. Nothing
 * is written here: df_slots_ask() grants a slot, the caller writes the labels together with what
 * makes the step live, in one write, and calls df_slots_entered() whether it came to that or not.
 * In between the step counts as living, and no lock is held. docs/internals/slots.md tells more.
 * Thread rule: any thread.
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
    struct df_queue *queue; /* wakes who may start */
    pthread_mutex_t lock;   /* of the rest */
    struct df_admission waiting;
    struct df_admission_step **entering; /* have a slot that the store does not know yet */
    size_t entering_count;
    struct df_metric *waits; /* how many */
};

/* All zero before. queue: borrowed. */
int df_slots_init(struct df_slots *l, struct df_spawner *s, struct df_queue *queue,
                  struct df_err *err) DF_MUST_CHECK;
void df_slots_free(struct df_slots *l);

/* ---- the labels of a document in memory ---- */

int df_slot_set(cJSON *task, struct df_err *err) DF_MUST_CHECK;
int df_slot_clear(cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* ---- asking ---- */

struct df_slot {
    struct df_admission_step *entry; /* granted: whose; NULL: it had one, or it is refused: */
    int64_t wake_us;   /* refused: ask again then, to tell anew how many are before it; or 0 */
    char message[256]; /* refused: why */
};

/* Asks for a slot, unless the step has one. Refused, it waits here and is woken when it is its
 * turn. */
int df_slots_ask(struct df_slots *l, const cJSON *task, struct df_slot *ret,
                 struct df_err *err) DF_MUST_CHECK;
/* What was granted is written, or the write failed. */
void df_slots_entered(struct df_slots *l, struct df_slot *slot);

/* ---- coming and going ---- */

/* Steps have lost these labels: who may start now looks again. */
void df_slots_wake(struct df_slots *l);

/* At the start: does this unfinished step wait for a slot? Then it has its turn before any that
 * comes later. */
int df_slots_expect(struct df_slots *l, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* It wants no slot now, if it ever did: those behind it move up. */
void df_slots_leave(struct df_slots *l, const char *name);

#endif
