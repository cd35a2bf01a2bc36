/*
 * events.h - Kubernetes Events (events.k8s.io/v1) about steps in a cluster: one for each entry of
 * status.phaseHistory; and one about a Run that waits for its approval for long. Contract:
 * Kubernetes' Event API. An Event's name is derived from the step and the entry, so that an Event
 * that is posted twice exists once.
 *
 * A thread reads the journal and posts the Events of one step after the other; it repeats each
 * until the API server takes or refuses it. No pass of the control loop waits for it. If the API
 * server refuses Events, the log says so once. Only the leader posts. Thread rule: one owner.
 */
#ifndef DF_JOURNAL_EVENTS_H
#define DF_JOURNAL_EVENTS_H

#include "spawner/spawner.h"

struct df_events; /* opaque */

/* *ret: NULL if no step runs in a cluster. s is borrowed, and outlives it. */
int df_events_start(struct df_spawner *s, struct df_events **ret, struct df_err *err) DF_MUST_CHECK;
/* Posts what the journal has, for a short time. NULL is fine. */
void df_events_stop(struct df_events *e);

/* The Event as it is posted; on_task: about the TaskAction, else about what its engine made
 * (status.engineRef). */
int df_event_build(const cJSON *task, int entry, bool on_task, const char *reporter, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* The one about a Run that still waits for its approval (status.remindedAt). */
int df_event_reminder(const cJSON *run, const char *reporter, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;

#endif
