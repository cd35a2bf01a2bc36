/*
 * heartbeat.h - tells Terrakube's API that a job lives (2.33 on), and other pods that its step
 * does: keys in Redis, set at once and every 15 s, with 45 s to live. A thread of its own, so that
 * nothing else holds it up. Thread rule: calls from one thread.
 */
#ifndef DF_TERRAKUBE_HEARTBEAT_H
#define DF_TERRAKUBE_HEARTBEAT_H

#include "common/base/wait_listener.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

struct df_terrakube_heartbeat; /* opaque */

/* Starts it. All is borrowed; of p job and step are used. A Redis that is away is tried again until
 * the end, one that refuses the password or the certificate once an hour: the listener, which may
 * be NULL, hears of it from the thread. ms is INT64_MAX then, or 0. pod: a random text; while it
 * has the step's key df_terrakube_wire_lives_elsewhere() is true for other pods. */
int df_terrakube_heartbeat_new(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, const char *pod,
                               const struct df_wait_listener *listener,
                               struct df_terrakube_heartbeat **ret,
                               struct df_err *err) DF_MUST_CHECK;
/* Removes the keys that are its own, and ends. NULL is fine. */
void df_terrakube_heartbeat_free(struct df_terrakube_heartbeat *h);

#endif
