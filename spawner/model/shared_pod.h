/*
 * shared_pod.h - one pod for a plan and its apply (placement.podPerStep: false).
 *
 * Two fields say all of it:
 *   spec.keepsPodFor of the plan {taskAction, timeoutSeconds}: the pod stays after the plan for the
 *     apply of this name, which has so many seconds.
 *   status.engineRef of the apply with the members hostUid and podUid: the apply was offered to the
 *     pod podUid of the step hostUid, the host. The other members are those of the host's
 *     engineRef, so that the engine looks at the host's Job.
 * Only that pod can claim the apply while the reference is there. An apply that nobody has claimed
 * loses the reference in the same write that prepares a Job of its own, so that one of the two gets
 * it and never both. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_SHARED_POD_H
#define DF_MODEL_SHARED_POD_H

#include "common/json/json.h"

/* The uid of the host in a status.engineRef; NULL: the step has resources of its own, or ref is
 * NULL. Borrowed. */
const char *df_shared_pod_host_of(const cJSON *ref);
/* The same of a TaskAction. */
const char *df_shared_pod_host(const cJSON *task);

/* The name of the step for which the pod of this plan stays; NULL: it ends with the plan. Borrowed.
 */
const char *df_shared_pod_guest(const cJSON *plan);

/* May the apply, which has not begun, be offered to the pod of the plan? plan: NULL if it does not
 * exist. The pod is not proven gone, a token of it has claimed the plan, and it has time for
 * the apply. */
bool df_shared_pod_may_join(const cJSON *apply, const cJSON *plan);

/* The reference by which an apply is offered to the pod of the plan. The caller deletes *ret. */
int df_shared_pod_ref(const cJSON *plan, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Is the reference an offer to the pod of a plan? False: NULL, a Job of the step's own, or an offer
 * to a standby runner. */
bool df_shared_pod_is_of_plan(const cJSON *ref);

/* Takes the offer back: removes the reference and the time `created`, from which the pending
 * deadline of the next attempt counts. Nothing for a step without an offer. */
void df_shared_pod_leave(cJSON *apply);

/* What comes next in the pod of a plan that has succeeded. */
enum df_shared_pod_next {
    DF_SHARED_POD_ENDS,  /* nothing: the pod ends */
    DF_SHARED_POD_WAITS, /* not decided yet */
    DF_SHARED_POD_APPLY  /* the apply: it was offered to this pod, and is not over */
};
/* run, apply: NULL: it does not exist. */
enum df_shared_pod_next df_shared_pod_next(const cJSON *plan, const cJSON *run, const cJSON *apply);

#endif
