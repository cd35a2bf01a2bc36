/*
 * standby_pool.h - how many standby runners there are (steps/standby.h), and which step gets one.
 *
 * There are two demands: a class may keep some (classes.NAME.standby), and a run whose plan is at
 * work wants one for its apply, if that needs no approval (kubernetes.applyAhead), or while a
 * person is asked for one (kubernetes.applyAheadFor). A demand is for a form of pod, and any step
 * of that form may take the runner. A thread of the leader makes the Jobs that are missing and
 * removes those that nobody wants. Thread rule: any thread, where nothing else is said.
 */
#ifndef DF_CONTROL_STANDBY_POOL_H
#define DF_CONTROL_STANDBY_POOL_H

#include "spawner/control/task_pass.h"

/* Starts the thread. *ret: NULL if the engine of new steps has no standby runners. */
int df_standby_pool_start(struct df_control *c, struct df_standby_pool **ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Joins the thread. The runners stay for the next leader. NULL is fine. */
void df_standby_pool_stop(struct df_standby_pool *pool);

/* An object with this name has changed in the engine: if it is that of a standby runner, wakes the
 * step that was offered to it. */
void df_standby_notify(struct df_control *c, const char *name);

/* At the end of a pass over a run: does its apply want a runner now? Never fails: without one the
 * apply gets a Job of its own. */
void df_standby_want(struct df_control *c, const struct df_run_view *view);

/* The run is over or does not exist: its apply wants no runner. */
void df_standby_forget(struct df_control *c, const char *run);

/* For the pass over a step that is to be started: takes a runner that fits, as p->runner. Nothing
 * if there is none. */
int df_standby_find(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;
/* The step of the pass was not offered to p->runner after all. why: NULL: it has to wait for a
 * slot. After a failure the offer may be durable all the same: nobody else gets that runner. */
void df_standby_give_back(const struct df_task_pass *p, const struct df_err *why);

/* After the observation of a step. If its pod finds no place, runners that wait for an apply give
 * up theirs, and no new ones are made, for the first minute of its Job, or of the step, if its Job
 * is refused: a pod that has waited for longer, because no node is large enough, say, is nothing to
 * the runs of others. If it was offered to a standby runner: tells the runner again, which a crash
 * may have left undone, and forgets the runner when the step and its pod have ended: until then the
 * end of the pod is to wake the step. */
void df_standby_observe(struct df_task_pass *p);
/* The pass has taken the offer of its step back, in the write that prepared a Job of its own:
 * removes the runner that had the offer. Nothing for a step without such an offer. */
void df_standby_leave(struct df_task_pass *p);

#endif
