/*
 * control.h - the loop that moves runs and steps on: a deduplicated queue of keys, workers in plain
 * blocking code, one decision (model.h) and one action a pass. Level-triggered: a crash between any
 * two lines is repaired by the next pass. Thread rule: any thread may call.
 */
#ifndef DF_CONTROL_H
#define DF_CONTROL_H

#include "spawner/spawner.h"

struct df_control; /* opaque */

/* Makes the queue and watches the store; nothing is worked on yet. The caller sets s->control;
 * s->followers and s->changes are set here. It comes before the API and is freed after it, because
 * the API's threads use it. */
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

/* Creates a run of an executor: numbers it and copies what the executor says, which is nothing
 * secret. body: {action, variables, arguments, autoApprove}, and labels and annotations, which go
 * into the run's metadata (the API keeps a request's Idempotency-Key there, so that key and run are
 * one write). Who asked is written into the audit trail by the API, also when it is refused. */
int df_control_create_run(struct df_spawner *s, const char *executor, const cJSON *body,
                          enum df_role role, const char *actor, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Sets the run's decision. CONFLICT WrongState when it does not wait for one; the same verdict
 * twice is success. */
int df_control_decide(struct df_spawner *s, const char *run, bool approve, enum df_role role,
                      const char *actor, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Asks for the end of a run. A final run: CONFLICT WrongState. Twice is success. */
int df_control_cancel(struct df_spawner *s, const char *run, enum df_role role, const char *actor,
                      const char *why, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Does no other executor keep its state where this one does? CONFLICT StorageInUse. */
int df_control_check_storage(struct df_spawner *s, const cJSON *executor,
                             struct df_err *err) DF_MUST_CHECK;

/* Takes in a TaskAction that stands alone: a workflow. doc: admitted (model.h), without status.
 * USER when there is no engine for it. */
int df_control_create_task(struct df_spawner *s, cJSON *doc, const char *actor, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;
/* Asks for its end. A final one, or a step of a run: CONFLICT WrongState. Twice is success. */
int df_control_cancel_task(struct df_spawner *s, const char *name, const char *actor,
                           const char *why, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Removes it and what its engine keeps of it. One that has not ended, or a step of a run: CONFLICT
 * WrongState. */
int df_control_delete_task(struct df_spawner *s, const char *name,
                           struct df_err *err) DF_MUST_CHECK;

/* Removes an executor with its runs, steps, logs, plans and managed state. CONFLICT while its state
 * forbids it (df_executor_check_delete) or runs are unfinished. */
int df_control_delete_executor(struct df_spawner *s, const char *name, enum df_role role,
                               const char *actor, struct df_err *err) DF_MUST_CHECK;

#endif
