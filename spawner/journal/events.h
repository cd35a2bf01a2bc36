/*
 * events.h - Kubernetes Events (events.k8s.io/v1) about the steps that live in a cluster: one for
 * each entry of status.phaseHistory. Contract: Kubernetes' Event API; names are derived from the
 * step and the entry, so that an Event that was sent twice is there once.
 *
 * Nobody waits for them: they are posted by a thread of their own, in order, and again until the
 * API server answers. It may forbid them, which is said once. Thread rule: any thread may tell.
 */
#ifndef DF_JOURNAL_EVENTS_H
#define DF_JOURNAL_EVENTS_H

#include "common/json/json.h"
#include "common/kube/kube.h"

struct df_events; /* opaque */

struct df_events_options {
    struct df_kube *kube; /* borrowed, and outlives it */
    bool on_tasks;        /* TaskActions are objects of the cluster: Events are about them */
};

int df_events_start(const struct df_events_options *o, struct df_events **ret,
                    struct df_err *err) DF_MUST_CHECK;
/* What was told is posted, as far as the API server takes it at once. NULL is fine. */
void df_events_stop(struct df_events *e);

/* May Events about this step be told yet? Not while the object that they are about is to come. */
bool df_events_may_tell(const struct df_events *e, const cJSON *task);

/* Tells of this entry of its history, soon: after 25 at once fifty a second are posted, so
 * that they do not stand in the way of what they tell of. Beyond DF_LIMIT_EVENTS_WAITING, and
 * without memory, the Event is dropped, which the log says. NULL is fine. */
void df_events_tell(struct df_events *e, const cJSON *task, int entry);

/* The Event as it is posted; on_task: about the TaskAction, else about what its engine made
 * (status.engineRef). */
int df_event_build(const cJSON *task, int entry, bool on_task, const char *reporter, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
