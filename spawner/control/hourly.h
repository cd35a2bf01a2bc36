/*
 * hourly.h - a thread of the leader that applies retention (requests/retention.h), measures what is
 * stored, completes old resources, forgets expired tokens and lets executors name their errored
 * states, when it begins to lead and every hour after that; a minute after that look has failed.
 * Thread rule: start and stop in one thread.
 */
#ifndef DF_CONTROL_HOURLY_H
#define DF_CONTROL_HOURLY_H

#include "common/base/periodic.h"
#include "spawner/spawner.h"

/* df_periodic_stop() ends it. */
int df_hourly_start(struct df_spawner *s, struct df_periodic **ret,
                    struct df_err *err) DF_MUST_CHECK;

#endif
