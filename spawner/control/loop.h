/*
 * loop.h - what the files of control/ share: the loop itself.
 *
 * A reconciler executes one pass over one document: observe, ask the pure decision (model.h), act
 * once, write. It returns
 *
 *   0              *ret_wake_us is the real time of the next pass; 0: after the next change
 *   DF_PASS_PAUSE  the same, but the document's changes by this pass cause no other pass. Without
 *                  this a pass that stores a refusal would repeat the refused request in a loop
 *   -1             the pass is repeated after a back-off
 *
 * The queue never runs two passes over one document at once.
 */
#ifndef DF_CONTROL_LOOP_H
#define DF_CONTROL_LOOP_H

#include <stdatomic.h>

#include "common/base/strs.h"
#include "spawner/control/control.h"
#include "spawner/control/queue.h"
#include "spawner/control/slots.h"
#include "spawner/control/woken.h"
#include "spawner/model/labels.h"

#define DF_PASS_PAUSE DF_QUEUE_PAUSE

struct df_control {
    struct df_spawner *s;
    struct df_queue *queue;
    struct df_metric *passes;
    pthread_t *workers;
    size_t worker_count;
    int64_t reachable_since_us; /* real time of the start: since then runners can report */
    atomic_bool working;        /* true after the start; until then changes are not queued */
    atomic_bool draining;       /* no new step is started */
    atomic_uint untrimmed_passes;
    struct df_woken told;          /* versions of steps for which their run was woken */
    atomic_int_least64_t swept_us; /* real time of the last sweep of ended runs' secrets */

    struct df_strs
        held; /* uids of what a restore left and nobody could cancel; fixed by the start */
    struct df_slots slots;
    struct df_reporter *reporter;         /* NULL: no State Service */
    struct df_periodic *hourly;           /* applies retention */
    struct df_standby_pool *standby_pool; /* NULL: the engine has no standby runners */
    struct df_events *events;             /* NULL: no step runs in a cluster */
};

int df_reconcile_executor(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err) DF_MUST_CHECK;
int df_reconcile_revision(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err) DF_MUST_CHECK;
int df_reconcile_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                     struct df_err *err) DF_MUST_CHECK;
int df_reconcile_task(struct df_control *c, const char *name, int64_t *ret_wake_us,
                      struct df_err *err) DF_MUST_CHECK;

#endif
