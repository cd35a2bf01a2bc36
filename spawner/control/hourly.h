/*
 * hourly.h - a thread of the leader that applies retention (requests/retention.h), measures what is
 * stored and completes old resources, when it begins to lead and every hour after that. Thread rule:
 * start and stop in one thread.
 */
#ifndef DF_CONTROL_HOURLY_H
#define DF_CONTROL_HOURLY_H

#include "spawner/spawner.h"

struct df_hourly; /* opaque */

int df_hourly_start(struct df_spawner *s, struct df_hourly **ret, struct df_err *err) DF_MUST_CHECK;
void df_hourly_stop(struct df_hourly *h); /* NULL is fine */

#endif
