/* Standby runners that this leader did not make, and those that have lost their step. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/standby/standby_parts.h"
#include "spawner/model/run.h"
#include "spawner/model/shared_pod.h"

enum { LISTED_MS = 1000 }; /* between two tries to list what exists */

/* Its runner is told that it is over, and ends; the pod would stay for a moment. Best effort. */
void df_standby_end(struct df_spawner *s, struct df_engine *e, const char *id)
{
    const struct df_engine_step step = {.name = id,
                                        .uid = id,
                                        .was_created = true,
                                        .is_deleted = true,
                                        .runner.grace_seconds = s->config->timeout_grace_s};
    struct df_err why = {0};
    df_debug("standby runner %s goes", id);
    if (e->ops->runner->step.cancel(e, &step, &why) < 0)
        df_warn("the Job of standby runner %s is not removed: %s", id, why.message);
}

/* ---- what an earlier leader left ---- */

/* What an earlier leader made for a run stays until the next pass over the run, which says whether
 * its apply wants it. */
static int expect_pass(struct df_standby_pool *pool, const char *name, struct df_err *err)
{
    DF_SHARED const cJSON *run = NULL;
    struct df_err why = {0};
    if (df_store_look_for(pool->c->s->store, DF_KIND_RUN, name, &run, err) < 0)
        return -1;
    if (!run || df_run_is_final(run))
        return 0;
    if (df_demand_apply(pool, run, &why) < 0)
        df_debug("run %s: the standby runner for its apply is not kept: %s", name, why.message);
    df_queue_wake(pool->c->queue, DF_KIND_RUN, name);
    return 0;
}

static int add_existing(void *arg, const cJSON *ref, const struct df_standby_form *form,
                        int64_t age_ms, struct df_err *err)
{
    struct df_standby_pool *pool = arg;
    struct df_err why = {0};
    if (df_standby_add(pool->runners, ref, form, age_ms, &why) < 0) {
        df_warn("standby runner %s is not taken over: %s", df_json_str(ref, "name"), why.message);
        return why.cls == DF_ERR_LIMIT ? 0 : df_err_pass(err, &why);
    }
    return form->run[0] ? expect_pass(pool, form->run, err) : 0;
}

/* A df_store_visit: a runner that has this step is not free. */
static int offer_again(const cJSON *task, void *arg, struct df_err *err)
{
    const struct df_standby_pool *pool = arg;
    const char *id = df_shared_pod_host(task);
    (void)err;
    if (df_standby_is(id))
        df_standby_offer(pool->runners, id, df_json_str(task, "metadata.uid"));
    return 0;
}

/* The same for runs: of a step whose TaskAction was taken away by force, the run ends the pod
 * (lost_step.h). */
static int offer_noted(const cJSON *run, void *arg, struct df_err *err)
{
    const struct df_standby_pool *pool = arg;
    const cJSON *step;
    (void)err;
    cJSON_ArrayForEach (step, df_json_at(run, "status.steps")) {
        const char *id = df_json_str(step, "standbyRunner"), *uid = df_json_str(step, "uid");
        if (id && uid)
            df_standby_offer(pool->runners, id, uid);
    }
    return 0;
}

static int find_existing(struct df_standby_pool *pool, struct df_err *err)
{
    struct df_store *store = pool->c->s->store;
    if (pool->engine->ops->runner->standbys(pool->engine, add_existing, pool, err) < 0)
        return -1;
    if (df_store_each(store, DF_KIND_TASK_ACTION, DF_LABEL_UNFINISHED "=true", offer_again, pool,
                      err) < 0)
        return -1;
    return df_store_each(store, DF_KIND_RUN, DF_LABEL_UNFINISHED "=true", offer_noted, pool, err);
}

/* Until this is done, no runner is told that it is over, and none is taken or removed: it may have
 * a step. The caller holds the lock. */
void df_standby_take_over(struct df_standby_pool *pool)
{
    struct df_err why = {0};
    (void)pthread_mutex_unlock(&pool->lock);
    int result = find_existing(pool, &why);
    if (result == 0)
        df_standby_open(pool->runners);
    else
        df_warn("standby runners: %s", why.message);
    (void)pthread_mutex_lock(&pool->lock);
    struct timespec until = df_mono_after_us(LISTED_MS * INT64_C(1000));
    while (result < 0 && !pool->stopped &&
           pthread_cond_timedwait(&pool->changed, &pool->lock, &until) == 0)
        continue;
}

/* ---- what has lost its step ---- */

/* The step that was offered to a runner. */
enum link {
    HAS_STEP,  /* it names the runner, or nobody knows */
    LEFT,      /* it got a Job of its own; the runner did not hear of it */
    IS_OVER,   /* it has ended */
    TAKEN_AWAY /* its TaskAction was deleted by force */
};

static enum link link_of(const struct df_standby_pool *pool, const char *id, const char *step_uid)
{
    DF_SHARED const cJSON *task = NULL;
    struct df_err why = {0};
    if (df_store_look_by_uid(pool->c->s->store, DF_KIND_TASK_ACTION, step_uid, &task, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? TAKEN_AWAY : HAS_STEP;
    if (df_task_is_final(task))
        return IS_OVER;
    return df_streq(df_shared_pod_host(task), id) ? HAS_STEP : LEFT;
}

/* Of a step that is over its own pass removes the pod, and of one that was taken away its run,
 * which finds the pod by the list (lost_step.h). */
static bool has_ended(const struct df_standby_pool *pool, const char *id)
{
    const struct df_engine_step step = {
        .name = id, .uid = id, .was_created = true, .was_claimed = true};
    struct df_engine_observation seen;
    struct df_err why = {0};
    return pool->engine->ops->runner->step.status(pool->engine, &step, &seen, &why) == 0 &&
           seen.phase != DF_ENGINE_PENDING && seen.phase != DF_ENGINE_RUNNING;
}

static void sweep_one(struct df_standby_pool *pool, const char *id)
{
    char step[DF_STANDBY_STEP];
    df_standby_step(pool->runners, id, step);
    enum link link = step[0] ? link_of(pool, id, step) : HAS_STEP;
    if (link == HAS_STEP || (link != LEFT && !has_ended(pool, id)))
        return;
    df_standby_remove(pool->runners, id);
    if (link == LEFT)
        df_standby_end(pool->c->s, pool->engine, id);
}

/* The caller holds the lock, and nothing else is to do. */
void df_standby_sweep(struct df_standby_pool *pool)
{
    pool->swept_ms = df_mono_ms();
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->seen_count; i++)
        sweep_one(pool, pool->seen[i].id);
    (void)pthread_mutex_lock(&pool->lock);
}
