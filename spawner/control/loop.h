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

#include "spawner/control/places.h"
#include "spawner/control/queue.h"
#include "spawner/model/labels.h"
#include "spawner/news/changes.h"
#include "spawner/news/followers.h"

#define DF_PASS_PAUSE 1

struct df_control {
    struct df_spawner *s;
    struct df_queue *queue;
    struct df_followers followers;
    struct df_metric *passes;
    pthread_t *workers;
    size_t worker_count;
    int64_t hears_since_us; /* real time of the start: runners are heard from then on */
    atomic_bool working;    /* the loop was started: before, nothing is put into the queue */
    atomic_bool draining;   /* no new step is started */
    atomic_uint untrimmed_passes;
    atomic_bool missed; /* a wake was lost for want of memory: look at everything */

    struct df_changes changes;
    struct df_places places;
    struct df_reporter *reporter; /* NULL: nobody is told */
    pthread_mutex_t taking;       /* held while an applied executor is judged */
};

int df_reconcile_executor(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err) DF_MUST_CHECK;
int df_reconcile_run(struct df_control *c, const char *name, int64_t *ret_wake_us,
                     struct df_err *err) DF_MUST_CHECK;
int df_reconcile_task(struct df_control *c, const char *name, int64_t *ret_wake_us,
                      struct df_err *err) DF_MUST_CHECK;
/* task: a workflow. */
int df_reconcile_workflow(struct df_control *c, const cJSON *task, int64_t *ret_wake_us,
                          struct df_err *err) DF_MUST_CHECK;
/* What its engine must know of it; borrowed from both. */
void df_workflow_engine_step(const struct df_config *config, const cJSON *task,
                             struct df_engine_step *ret);

/* Gives a new run its number: counts its executor up, which must be in a state that allows it.
 * *ret_executor: as it is then. */
int df_control_number_run(struct df_spawner *s, const cJSON *run, enum df_role role,
                          cJSON **ret_executor, int64_t *ret_number,
                          struct df_err *err) DF_MUST_CHECK;

/* Gives an admitted workflow its labels and its first status. */
int df_new_workflow(struct df_spawner *s, cJSON *doc, const char *actor,
                    struct df_err *err) DF_MUST_CHECK;

/* Removes a run that has ended with its steps, their logs and plans. RETRY while a step is still
 * being cleaned up. */
int df_purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err) DF_MUST_CHECK;
/* Removes an ended step that its engine holds nothing of, with its log and plan. RETRY while it
 * does, and as df_reporter_let_go(). */
int df_purge_step(struct df_spawner *s, const cJSON *task, struct df_err *err) DF_MUST_CHECK;

/* A note that somebody asked for something: {by, at} and one member more (value may be NULL). NULL
 * on no memory. */
cJSON *df_signed_note(const char *by, const char *key, const char *value);

#endif
