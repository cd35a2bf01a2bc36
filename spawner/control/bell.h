/*
 * bell.h - a thread of the leader that wakes Terrakube's queue: when it begins to lead, and a second
 * time after each step that made room. At the first time the ended job mostly is still pending, as the
 * oldest one, and Terrakube wakes the oldest alone. Thread rule: start and stop in one thread.
 */
#ifndef DF_CONTROL_BELL_H
#define DF_CONTROL_BELL_H

#include "common/base/periodic.h"
#include "spawner/spawner.h"

/* *ret NULL: there is no Terrakube. df_periodic_stop() ends it. */
int df_bell_start(struct df_spawner *s, struct df_periodic **ret, struct df_err *err) DF_MUST_CHECK;

#endif
