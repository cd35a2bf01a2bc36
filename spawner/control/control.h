/*
 * control.h - the control loop: a queue of keys without duplicates, and workers that execute one
 * pass over one document at a time. A pass makes one decision (model.h) and does one action. Each
 * pass reads the documents anew (the loop is level-triggered), so the next pass repairs a crash
 * between any two lines. Thread rule: any thread.
 */
#ifndef DF_CONTROL_H
#define DF_CONTROL_H

#include "spawner/requests/holdings.h"
#include "spawner/spawner.h"

struct df_control; /* opaque */

/* Creates the queue and watches the store; no worker runs yet. The caller sets s->control. Call it
 * before the API is created, and df_control_free() after the API is freed: the API's threads use
 * the loop. */
int df_control_new(struct df_spawner *s, struct df_control **ret, struct df_err *err) DF_MUST_CHECK;
void df_control_free(struct df_control *c); /* stopped or never started; NULL is fine */

/* Starts the workers, and queues every unfinished document. s->server_url must be set, because
 * runners receive it. */
int df_control_start(struct df_control *c, struct df_err *err) DF_MUST_CHECK;

/* Call it when an engine's object with this name has changed. name: of a step, or of the lock on a
 * target; then all workflows that wait for that lock are queued. */
void df_control_notify(struct df_control *c, const char *name);

/* Stops starting steps, and joins the workers. cancel_steps: first cancels the steps of engines on
 * this machine, and waits until they have ended, or the grace period is over, or the store of blobs
 * fails, without which they cannot end; the API must still answer during this time, because runners
 * report to it. Without cancel_steps these steps continue, and the next spawner finds them. Steps
 * of an engine elsewhere (not runs_here) always continue. */
void df_control_stop(struct df_control *c, bool cancel_steps);

#endif
