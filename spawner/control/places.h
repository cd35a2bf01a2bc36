/*
 * places.h - the places for living steps (control.maxSteps). Thread rule: any thread.
 */
#ifndef DF_CONTROL_PLACES_H
#define DF_CONTROL_PLACES_H

#include "spawner/control/loop.h"

/* Takes a place for the step, unless it has one, with the change (store.h), which must set
 * DF_LABEL_LIVE. *ret_taken false: there is none; the step is woken when one is free. The count is
 * of what the store says, so that nothing is ever counted wrong for long. */
int df_places_take(struct df_control *c, const cJSON *task, df_store_change change, void *arg,
                   bool *ret_taken, struct df_err *err) DF_MUST_CHECK;

/* A step has lost its label: who waits for a place looks again. */
void df_places_wake(struct df_control *c);

#endif
