/*
 * control.h - the control loop: a queue of keys without duplicates, workers in blocking code, one
 * decision (model.h) and one action a pass. It is level-triggered: the next pass repairs a crash
 * between any two lines. Thread rule: any thread.
 */
#ifndef DF_CONTROL_H
#define DF_CONTROL_H

#include "spawner/requests/holdings.h"
#include "spawner/spawner.h"

struct df_control; /* opaque */

/* Creates the queue and watches the store; no worker runs yet. The caller sets s->control. It is
 * made before the API and freed after it, because the API's threads use it. */
int df_control_new(struct df_spawner *s, struct df_control **ret, struct df_err *err) DF_MUST_CHECK;
void df_control_free(struct df_control *c); /* stopped before; NULL is fine */

/* Starts the workers, and queues every unfinished document. s->server_url must be set: runners get
 * it. */
int df_control_start(struct df_control *c, struct df_err *err) DF_MUST_CHECK;

/* An engine reports a change of the object with this name: a step, or the lock on a target. */
void df_control_engine_news(struct df_control *c, const char *name);

/* Starts no step any more, and joins the workers. cancel_steps: cancels the steps of engines on
 * this machine before, and waits until they have ended or the grace period is over; the API must
 * still answer, because runners report to it. Without cancel_steps they continue, and the next
 * spawner finds them; steps of a remote engine (is_remote) always do. */
void df_control_stop(struct df_control *c, bool cancel_steps);

#endif
