/*
 * events.h - Kubernetes Events (events.k8s.io/v1) about steps in a cluster: one for each entry of
 * status.phaseHistory. Contract: Kubernetes' Event API. An Event's name is derived from the step
 * and the entry, so that an Event that is posted twice exists once.
 *
 * A thread posts them in order, and repeats each until the API server answers; no pass waits for
 * that. If the API server refuses them, the log says so once. Thread rule: any thread.
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
/* Posts what is queued, for a short time. NULL is fine. */
void df_events_stop(struct df_events *e);

/* False while the object that Events about this step refer to does not exist yet. */
bool df_events_may_tell(const struct df_events *e, const cJSON *task);

/* Queues the Event for this entry of the step's history. The thread posts slowly enough not to
 * delay Jobs. Beyond DF_LIMIT_EVENTS_WAITING, and without memory, the Event is dropped and the log
 * says so. NULL is fine. */
void df_events_tell(struct df_events *e, const cJSON *task, int entry);

/* The Event as it is posted; on_task: about the TaskAction, else about what its engine made
 * (status.engineRef). */
int df_event_build(const cJSON *task, int entry, bool on_task, const char *reporter, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
