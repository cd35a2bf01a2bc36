/*
 * places.h - the places for living steps (limits.*): who gets one, and what the others are told.
 *
 * A step that wants one and is refused waits here, in memory, in the order of model/admission.h; a
 * start finds who waits in the documents. How many live is counted in the store by labels each
 * time. No lock is held while anything is written: a step on its way into a place counts as living.
 * Thread rule: any thread.
 */
#ifndef DF_CONTROL_PLACES_H
#define DF_CONTROL_PLACES_H

#include <pthread.h>

#include "spawner/control/control.h"
#include "spawner/model/admission.h"

struct df_metric;

struct df_places {
    pthread_mutex_t lock;
    struct df_admission waiting;
    struct df_admission_step **entering; /* have a place that the store does not know yet */
    size_t entering_count;
    struct df_metric *waits; /* how many */
};

int df_places_init(struct df_places *p, struct df_err *err) DF_MUST_CHECK;
void df_places_free(struct df_places *p);

/* Takes a place for the step, unless it has one, with the change (store.h), which must call
 * df_place_set(). *ret_wake_us 0: it has one. Otherwise there is none now, which its Progressing
 * condition tells: it is woken when it is its turn, and is to look again at that time, because how
 * many are before it is news then. */
int df_places_take(struct df_control *c, const cJSON *task, df_store_change change, void *arg,
                   int64_t *ret_wake_us, struct df_err *err) DF_MUST_CHECK;

/* The labels that count it as living, in a document in memory. */
int df_place_set(cJSON *task, struct df_err *err) DF_MUST_CHECK;
int df_place_clear(cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* Steps have lost these labels: who may start now looks again. */
void df_places_wake(struct df_control *c);

/* At the start: does this unfinished step wait for a place? Then it has its turn before any that
 * comes later. */
int df_places_expect(struct df_control *c, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* It wants no place now, if it ever did: those behind it move up. */
void df_places_leave(struct df_control *c, const char *name);

#endif
