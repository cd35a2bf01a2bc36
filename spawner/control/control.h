/*
 * control.h - the loop that moves runs and steps on: a deduplicated queue of keys, workers in plain
 * blocking code, one decision (model.h) and one action a pass. Level-triggered: a crash between any
 * two lines is repaired by the next pass. Thread rule: any thread may call.
 */
#ifndef DF_CONTROL_H
#define DF_CONTROL_H

#include "spawner/requests/holdings.h"
#include "spawner/spawner.h"

struct df_control; /* opaque */

/* Makes the queue and watches the store; nothing is worked on yet. The caller sets s->control. It is
 * made before the API and freed after it, because the API's threads use it. */
int df_control_new(struct df_spawner *s, struct df_control **ret, struct df_err *err) DF_MUST_CHECK;
void df_control_free(struct df_control *c); /* stopped before; NULL is fine */

/* Starts the workers (s->server_url must stand by now, runners are told it); everything unfinished
 * in the store is looked at first. */
int df_control_start(struct df_control *c, struct df_err *err) DF_MUST_CHECK;

/* Looks at this document soon. */
void df_control_wake(struct df_control *c, enum df_kind kind, const char *name);

/* News of an engine about what it keeps under this name: a step, or the lock on a target. */
void df_control_engine_news(struct df_control *c, const char *name);

/* Stops: no new step is started. cancel_steps: cancel what runs (the local engine's shutdown) and
 * wait until everything has ended or the grace period is over; the API must still answer, for the
 * runners report to it. Without cancel_steps they live on and the next spawner finds them again; so
 * do steps of an engine whose steps live elsewhere (is_remote) in any case.
 * Then joins the workers. */
void df_control_stop(struct df_control *c, bool cancel_steps);

#endif
