/*
 * standby_parts.h - what the files of the pool of standby runners share: standby_demands.c (who
 * wants a runner), standby_found.c (runners that this leader did not make, or that lost their
 * step), and standby_pool.c (the thread, and the passes). Only for these files and their tests.
 */
#ifndef DF_CONTROL_STANDBY_PARTS_H
#define DF_CONTROL_STANDBY_PARTS_H

#include "spawner/control/standby/standby_pool.h"
#include "spawner/model/runners.h"
#include "spawner/steps/standby.h"

struct df_demand {
    char run[64];     /* whose apply it is for; "": of a class */
    int64_t min, max; /* of a class */
    cJSON *task;      /* says everything about the pod; not stored anywhere */
    struct df_standby_form form;
    cJSON *preparation; /* what its runner may get ready; NULL: not known yet */
    int64_t retry_ms;   /* monotonic: no Job is made before */
    int64_t until_ms;   /* monotonic: a person is asked, and the demand ends then; 0: nobody is */
};

struct df_standby_pool {
    struct df_control *c;
    struct df_engine *engine;
    struct df_standby *runners;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool stopped;
    struct df_demand *demands[DF_LIMIT_STANDBY];
    size_t count;
    struct df_standby_view seen[DF_LIMIT_STANDBY]; /* the runners, at the last look */
    size_t seen_count;
    struct df_runners known; /* the same and the demands, for the decision (model/runners.h) */
    int64_t taken_ms;        /* monotonic: a step took a runner */
    int64_t
        crowded_until_ms; /* the same: until then runners make room for a step without a place */
    int64_t swept_ms;     /* the same: those that have a step were looked through */
};

/* With its demands. Its thread has ended. */
void df_standby_pool_free(struct df_standby_pool *pool);

/* ---- demands: the caller holds the lock, where nothing else is said ---- */

void df_demand_free(struct df_demand *d); /* NULL is fine */
void df_demand_cleanup(struct df_demand **d);
/* The place of that of a run; pool->count: there is none. */
size_t df_demand_find(const struct df_standby_pool *pool, const char *run);
void df_demand_drop(struct df_standby_pool *pool, const char *run);
/* Takes the lock. */
bool df_demand_has(struct df_standby_pool *pool, const char *run);
/* Takes the lock, and ownership on success. A run has one demand. With a full list (LIMIT) the
 * apply gets a Job of its own. */
int df_demand_add(struct df_standby_pool *pool, struct df_demand *d,
                  struct df_err *err) DF_MUST_CHECK;
/* Adds the demand for the apply of a run. Takes the lock. */
int df_demand_apply(struct df_standby_pool *pool, const cJSON *run,
                    struct df_err *err) DF_MUST_CHECK;
/* What create() and form() are to know of a step. *ret borrows from task and *ret_identities, which
 * the caller deletes. Needs no lock. */
int df_demand_describe(struct df_spawner *s, const cJSON *task, struct df_engine_step *ret,
                       cJSON **ret_identities, struct df_err *err) DF_MUST_CHECK;
int df_demand_form(struct df_spawner *s, struct df_engine *e, const cJSON *task,
                   struct df_standby_form *ret, struct df_err *err) DF_MUST_CHECK;

/* ---- the look: the caller holds the lock ---- */

/* One look of the thread: makes or removes one runner, or waits for the next look, unless the pool
 * is stopped. The caller holds the lock, which is given up meanwhile. */
void df_standby_look(struct df_standby_pool *pool);

/* ---- runners that were found ---- */

/* Lists what exists and which steps have it, and opens the list. After a failure it waits a moment.
 * The caller holds the lock, which is given up meanwhile. */
void df_standby_take_over(struct df_standby_pool *pool);
/* Forgets the runners whose step is over or names them no more, and ends those that were left. The
 * same lock rule. */
void df_standby_sweep(struct df_standby_pool *pool);
/* Removes the Job of a runner that is not in the list any more. Best effort; needs no lock. */
void df_standby_end(struct df_spawner *s, struct df_engine *e, const char *id);

#endif
