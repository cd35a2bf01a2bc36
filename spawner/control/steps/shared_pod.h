/*
 * shared_pod.h - what the control loop does for a plan and an apply in one pod; the decisions are
 * in spawner/model/shared_pod.h. Thread rule: the worker that has the key of the document.
 */
#ifndef DF_CONTROL_SHARED_POD_H
#define DF_CONTROL_SHARED_POD_H

#include "spawner/control/task_pass.h"

/* Sets spec.keepsPodFor of a new step of the run if its pod is to stay for the next one, which
 * applies its plan: the placement says podPerStep: false, the engine's runners claim as pods, and
 * the run needs no approval. step: steps[at] of the recipe, not stored yet. */
int df_shared_pod_keep(struct df_spawner *s, const struct df_run_view *view, size_t at, cJSON *step,
                       struct df_err *err) DF_MUST_CHECK;

/* For the pass over an apply that is to be started: the runner of its plan as p->runner, if its pod
 * stays for the apply. */
int df_shared_pod_find(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

/* The apply was offered to the pod of this plan: the plan gives its slot and the password of the
 * state away. */
int df_shared_pod_lend(struct df_control *c, const char *plan, struct df_err *err) DF_MUST_CHECK;

/* The step of the pass needs the pod of its host no more: wakes the host, which may go on to its
 * end. Nothing for a step with a pod of its own. */
void df_shared_pod_wake_host(struct df_task_pass *p);

/* After the observation: is the pod of this ended plan lent (serves_other_step)? Repeats what a
 * crash left undone of the offer, and wakes the apply, because the engine reports its pod under the
 * name of the plan. */
int df_shared_pod_observe(struct df_task_pass *p, struct df_err *err) DF_MUST_CHECK;

#endif
