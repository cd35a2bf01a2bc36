/*
 * standby_parts.h - what the files of the pool of standby runners share: standby_demands.c (who wants a
 * runner), standby_tally.c (what a look counts), standby_found.c (runners that this leader did not make, or that lost their step), and
 * standby_pool.c (the thread, and the passes). Only for these files and their tests.
 */
#ifndef DF_CONTROL_STANDBY_PARTS_H
#define DF_CONTROL_STANDBY_PARTS_H

#include "spawner/control/standby/standby_pool.h"
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

/* Runners of one form, for one run, without a step. */
struct df_form_count {
    const char *digest, *run; /* borrowed; run: for whose apply alone, "": for any step */
    int64_t idle;             /* there are so many */
    int64_t wanted;           /* so many are wanted by all classes; 0 for those of a run */
    int64_t wanted_now;       /* the same without those for later steps */
};

/* How many steps more may run in a namespace and class. */
struct df_room {
    const char *name_space, *class_name; /* borrowed; class_name: "": none */
    int64_t left;
};

/* What is counted once for each look; valid as long as the lock is held (standby_tally.c). */
struct df_standby_tally {
    struct df_demand *by_run[DF_LIMIT_STANDBY]; /* all demands, sorted */
    struct df_form_count forms[2 * DF_LIMIT_STANDBY];
    size_t form_count;
    struct df_room rooms[DF_LIMIT_STANDBY]; /* of those that were asked for */
    size_t room_count;
    int64_t ahead; /* free runners for an apply that has not begun */
    int64_t sure;  /* the same without those of which a person is asked */
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
    struct df_standby_tally tally;
    int64_t taken_ms; /* monotonic: a step took a runner */
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
/* Takes the lock, and ownership on success. A run has one demand. With a full list (LIMIT) the apply gets
 * a Job of its own. */
int df_demand_add(struct df_standby_pool *pool, struct df_demand *d,
                  struct df_err *err) DF_MUST_CHECK;
/* Adds the demand for the apply of a run. Takes the lock. */
int df_demand_apply(struct df_standby_pool *pool, const cJSON *run,
                    struct df_err *err) DF_MUST_CHECK;
/* What create() and form() are to know of a step. *ret borrows from task and *ret_identities, which the
 * caller deletes. Needs no lock. */
int df_demand_describe(struct df_spawner *s, const cJSON *task, struct df_engine_step *ret,
                       cJSON **ret_identities, struct df_err *err) DF_MUST_CHECK;
int df_demand_form(struct df_spawner *s, struct df_engine *e, const cJSON *task,
                   struct df_standby_form *ret, struct df_err *err) DF_MUST_CHECK;

/* ---- the tally of a look: the caller holds the lock ---- */

/* Counts what pool->seen and the demands say. Before the other ones, and again after a change. */
void df_tally_take(struct df_standby_pool *pool);
/* All zero if there is no such runner and no such demand. */
struct df_form_count df_tally_form(const struct df_standby_pool *pool, const char *digest,
                                   const char *run);
/* The demand for which the runner was made, also if its form is another one now; NULL: there is none. Not
 * for a runner of a class. */
const struct df_demand *df_tally_demand_of_run(const struct df_standby_pool *pool,
                                               const struct df_standby_view *v);
/* Who wants a runner of this form; NULL: nobody. */
const struct df_demand *df_tally_demand(const struct df_standby_pool *pool,
                                        const struct df_standby_view *v);
/* df_slots_room() for the step of this demand; 0 if it fails. */
int64_t df_tally_room(struct df_standby_pool *pool, const struct df_demand *d);

/* One look of the thread: makes or removes one runner, or waits for the next look, unless the pool is
 * stopped. The caller holds the lock, which is given up meanwhile. */
void df_standby_look(struct df_standby_pool *pool);

/* ---- runners that were found ---- */

/* Lists what exists and which steps have it, and opens the list. After a failure it waits a moment. The
 * caller holds the lock, which is given up meanwhile. */
void df_standby_take_over(struct df_standby_pool *pool);
/* Forgets the runners whose step is over or names them no more, and ends those that were left. The same
 * lock rule. */
void df_standby_sweep(struct df_standby_pool *pool);
/* Removes the Job of a runner that is not in the list any more. Best effort; needs no lock. */
void df_standby_end(struct df_spawner *s, struct df_engine *e, const char *id);

#endif
