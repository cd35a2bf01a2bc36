/*
 * watch.h - while a step runs: was its job cancelled? Terrakube tells nobody, so a thread asks the
 * API every few seconds. It also keeps the lock of the http backend while a command holds it: the
 * API gives it away otherwise. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_WATCH_H
#define DF_RUNNER_TERRAKUBE_WATCH_H

#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"
#include "runner/stop.h"

struct df_terrakube_watch; /* opaque */

/* A cancelled job, or a lock that was given away, stops the step as DF_STOP_OVER. All borrowed. */
int df_terrakube_watch_new(const struct df_terrakube_settings *s,
                           const struct df_terrakube_payload *p, struct df_stop *stop,
                           struct df_terrakube_watch **ret, struct df_err *err) DF_MUST_CHECK;
/* A command of the tool begins that takes the lock of the state, or it ended. */
void df_terrakube_watch_command(struct df_terrakube_watch *w, bool runs);
/* True if the last such command ran at this time, and has ended. NULL is fine. */
bool df_terrakube_watch_ran(const struct df_terrakube_watch *w, int64_t real_us);
/* True if that stopped the step: the lock was given away. NULL is fine. */
bool df_terrakube_watch_lost_lock(const struct df_terrakube_watch *w);
/* Ends the thread, also in the middle of a request. NULL is fine. */
void df_terrakube_watch_free(struct df_terrakube_watch *w);

#endif
