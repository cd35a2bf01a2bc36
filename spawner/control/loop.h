/*
 * loop.h - what the files of control/ share: the loop itself.
 *
 * A reconciler is one pass over one document: observe, ask the pure decision (model.h), act once,
 * write. It returns 0, with *ret_wake_us the real time at which it wants to look again (0: only on
 * a change, which may be one of its own); DF_PASS_PAUSE: the same, and what it wrote itself is no
 * reason to look again sooner, so that what was refused is not asked for again and again; or -1: it
 * is called again after the back-off. The queue never runs two passes over one document at once.
 */
#ifndef DF_CONTROL_LOOP_H
#define DF_CONTROL_LOOP_H

#include <stdatomic.h>

#include "spawner/control/control.h"
#include "spawner/control/queue.h"
#include "spawner/control/slots.h"
#include "spawner/model/labels.h"

#define DF_PASS_PAUSE DF_QUEUE_PAUSE

struct df_control {
    struct df_spawner *s;
    struct df_queue *queue;
    struct df_metric *passes;
    pthread_t *workers;
    size_t worker_count;
    int64_t hears_since_us; /* real time of the start: runners are heard from then on */
    atomic_bool working;    /* the loop was started: before, nothing is put into the queue */
    atomic_bool draining;   /* no new step is started */
    atomic_uint untrimmed_passes;
    atomic_int_least64_t swept_us; /* when what ended runs were given was last looked for */

    struct df_slots slots;
    struct df_reporter *reporter; /* NULL: nobody is told */
};

int df_reconcile_executor(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err) DF_MUST_CHECK;
int df_reconcile_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                     struct df_err *err) DF_MUST_CHECK;
int df_reconcile_task(struct df_control *c, const char *name, int64_t *ret_wake_us,
                      struct df_err *err) DF_MUST_CHECK;

#endif
