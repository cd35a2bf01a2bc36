/*
 * waits.h - tells people what a step waits for: once when it begins, with how long it may last, and
 * once when it is over. In the pod's log, and in the step's output while that can be written.
 */
#ifndef DF_RUNNER_TERRAKUBE_WAITS_H
#define DF_RUNNER_TERRAKUBE_WAITS_H

#include "common/base/wait_listener.h"
#include "runner/report/output.h"

/* Zero it, then df_terrakube_waits_init(). It must not move afterwards. */
struct df_terrakube_waits {
    struct df_wait_listener calls;   /* of API and storage; main thread */
    struct df_wait_listener threads; /* of Redis; any thread: the pod's log alone */
    struct df_output *output;        /* borrowed; NULL: not yet, or not any more */
    bool redis_was_away;             /* atomic */
};
void df_terrakube_waits_init(struct df_terrakube_waits *w);

/* True if Redis was away: live lines may be missing. */
bool df_terrakube_waits_had_redis_away(const struct df_terrakube_waits *w);

#endif
