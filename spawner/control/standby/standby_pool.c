/*
 * standby_pool.c - in this order: what model/runners.c is told for its decision; the thread; what
 * passes over runs and steps do.
 */
#include "spawner/control/standby/standby_parts.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/model/apply_window.h"
#include "spawner/model/approval.h"
#include "spawner/model/recipe.h"
#include "spawner/model/run.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/step_document.h"

enum {
    RETRY_MS = 5000,  /* after a Job that was not made, or was taken from a demand */
    CROWD_MS = 60000, /* from the first attempt to give a pod its place */
    SWEEP_MS = 60000, /* between two looks at the runners that have a step */
};

/* ---- what is known: the caller holds the lock ---- */

/* How many steps more may run in a namespace and class. */
struct room {
    const char *name_space, *class_name; /* borrowed; class_name: "": none */
    int64_t left;
};

static const char *text_at(const struct df_demand *d, const char *path)
{
    const char *text = df_json_str(d->task, path);
    return text ? text : "";
}

/* The limits of a step are those of its namespace and class: few of them differ. 0 if that
 * fails. */
static int64_t room_of(struct df_standby_pool *pool, const struct df_demand *d, struct room *rooms,
                       size_t *count)
{
    const char *name_space = text_at(d, "metadata.namespace"),
               *class_name = text_at(d, "spec.class");
    struct df_err why = {0};
    for (size_t i = 0; i < *count; i++)
        if (df_streq(rooms[i].name_space, name_space) && df_streq(rooms[i].class_name, class_name))
            return rooms[i].left;
    struct room *room = &rooms[(*count)++];
    *room = (struct room){name_space, class_name, 0};
    if (df_slots_room(&pool->c->slots, d->task, &room->left, &why) < 0)
        df_debug("run %s: no standby runner for its apply: %s", d->run, why.message);
    return room->left;
}

static void note_demands(struct df_standby_pool *pool)
{
    struct room rooms[DF_LIMIT_STANDBY];
    size_t room_count = 0;
    for (size_t i = 0; i < pool->count; i++) {
        const struct df_demand *d = pool->demands[i];
        struct df_runner_demand *known = &pool->known.demands[i];
        *known = (struct df_runner_demand){.run = d->run,
                                           .digest = d->form.digest,
                                           .min = d->min,
                                           .max = d->max,
                                           .retry_ms = d->retry_ms,
                                           .is_asked = d->until_ms};
        if (d->run[0])
            known->room = room_of(pool, d, rooms, &room_count);
        else
            known->waiting = df_slots_waiting(&pool->c->slots, df_json_str(d->task, "spec.class"));
    }
    pool->known.demand_count = pool->count;
}

static void note_runners(struct df_standby_pool *pool)
{
    pool->seen_count = df_standby_list(pool->runners, pool->seen);
    for (size_t i = 0; i < pool->seen_count; i++) {
        const struct df_standby_view *v = &pool->seen[i];
        pool->known.runners[i] = (struct df_runner){.run = v->form.run,
                                                    .digest = v->form.digest,
                                                    .is_free = v->is_free,
                                                    .has_step = v->has_step,
                                                    .waits = v->waits,
                                                    .has_asked = v->has_asked,
                                                    .made_ms = v->made_ms,
                                                    .since_ms = v->since_ms,
                                                    .quiet_ms = v->quiet_ms};
    }
    pool->known.runner_count = pool->seen_count;
}

static void note_all(struct df_standby_pool *pool)
{
    note_demands(pool);
    note_runners(pool);
    pool->known.now_ms = df_mono_ms();
    pool->known.may_make = !atomic_load(&pool->c->draining);
    pool->known.taken_ms = pool->taken_ms;
    pool->known.crowded_until_ms = pool->crowded_until_ms;
    pool->known.pending_ms = pool->c->s->config->timeout_pending_s * 1000;
    df_runners_count(&pool->known);
}

/* ---- the thread ---- */

static int new_id(char ret[64], struct df_err *err)
{
    char random[33];
    if (df_random_hex(random, 16, err) < 0)
        return -1;
    (void)snprintf(ret, 64, DF_STANDBY_PREFIX "%.20s", random);
    return 0;
}

static int make(const struct df_standby_pool *pool, const cJSON *task,
                const struct df_standby_form *form, struct df_err *err)
{
    DF_JSON cJSON *identities = NULL, *ref = NULL;
    struct df_engine_step step;
    char id[64];
    if (new_id(id, err) < 0 || df_demand_describe(pool->c->s, task, &step, &identities, err) < 0)
        return -1;
    step.name = step.uid = id;
    step.runner.standby = form->digest;
    if (pool->engine->ops->runner->step.create(pool->engine, &step, &ref, err) < 0)
        return -1;
    df_debug("standby runner %s is made", id);
    return df_standby_add(pool->runners, ref, form, 0, err);
}

/* The demand may be gone meanwhile. */
static void pause_demand(struct df_standby_pool *pool, const struct df_demand *d)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->demands[i] == d)
            pool->demands[i]->retry_ms = df_mono_ms() + RETRY_MS;
}

static void drop_ended_demands(struct df_standby_pool *pool)
{
    int64_t now_ms = df_mono_ms();
    for (size_t i = pool->count; i > 0; i--) {
        const struct df_demand *d = pool->demands[i - 1];
        if (d->until_ms && now_ms >= d->until_ms)
            df_demand_drop(pool, d->run);
    }
}

static void make_missing(struct df_standby_pool *pool, const struct df_demand *d)
{
    const struct df_standby_form form = d->form;
    DF_JSON cJSON *task = cJSON_Duplicate(d->task, true);
    struct df_err why = {0};
    (void)pthread_mutex_unlock(&pool->lock);
    int result = task ? make(pool, task, &form, &why) : df_fail_oom(&why);
    if (result < 0) /* a quota, say, lets it in later */
        df_log(why.cls == DF_ERR_CONFLICT || why.cls == DF_ERR_RETRY ? DF_LOG_DEBUG : DF_LOG_WARN,
               "a standby runner is not made: %s", why.message);
    (void)pthread_mutex_lock(&pool->lock);
    if (result < 0)
        pause_demand(pool, d);
}

static void remove_surplus(struct df_standby_pool *pool, const struct df_standby_view *surplus)
{
    char id[sizeof(surplus->id)], run[sizeof(surplus->form.run)];
    df_copy(id, sizeof(id), surplus->id);
    df_copy(run, sizeof(run), surplus->form.run);
    (void)pthread_mutex_unlock(&pool->lock);
    if (df_standby_dismiss(pool->runners, id))
        df_standby_end(pool->c->s, pool->engine, id);
    (void)pthread_mutex_lock(&pool->lock);
    size_t i = df_demand_find(pool, run);
    if (run[0] && i < pool->count)
        pause_demand(pool, pool->demands[i]);
}

static void tell_preparations(const struct df_standby_pool *pool)
{
    for (size_t i = 0; i < pool->seen_count; i++) {
        const struct df_standby_view *v = &pool->seen[i];
        const struct df_runner_demand *known =
            v->is_prepared || v->has_step
                ? NULL
                : df_runners_demand_of(&pool->known, &pool->known.runners[i]);
        const struct df_demand *d = known ? pool->demands[known - pool->known.demands] : NULL;
        struct df_err why = {0};
        if (d && d->preparation &&
            df_standby_prepare(pool->runners, v->id, d->preparation, &why) < 0)
            df_debug("standby runner %s gets nothing ready: %s", v->id, why.message);
    }
}

void df_standby_look(struct df_standby_pool *pool)
{
    drop_ended_demands(pool);
    note_all(pool);
    tell_preparations(pool);
    struct df_runners_verdict v = df_runners_next(&pool->known);
    if (v.next == DF_RUNNERS_MAKE)
        make_missing(pool, pool->demands[v.index]);
    else if (v.next == DF_RUNNERS_REMOVE)
        remove_surplus(pool, &pool->seen[v.index]);
    else if (df_mono_ms() >= pool->swept_ms + SWEEP_MS)
        df_standby_sweep(pool);
    else if (!pool->stopped) {
        struct timespec until = df_mono_after_us(v.wait_ms * INT64_C(1000));
        (void)pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
    }
}

static void *work(void *arg)
{
    struct df_standby_pool *pool = arg;
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->stopped && !df_standby_is_open(pool->runners))
        df_standby_take_over(pool);
    while (!pool->stopped)
        df_standby_look(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- start, stop ---- */

/* A step without an executor, by which the pods of a class are made. */
static int task_of_class(const struct df_config *config, const char *class_name, cJSON **ret,
                         struct df_err *err)
{
    DF_JSON cJSON *task = cJSON_CreateObject();
    cJSON *spec = df_json_object_at(task, "spec");
    int64_t longest = config->timeout_plan_s > config->timeout_apply_s ? config->timeout_plan_s
                                                                       : config->timeout_apply_s;
    if (df_json_add_str(spec, "engine", config->engine, err) < 0 ||
        df_json_add_str(spec, "class", class_name, err) < 0 ||
        df_json_add_num(spec, "timeoutSeconds", (double)longest, err) < 0 ||
        df_json_add_num(spec, "graceSeconds", (double)config->timeout_grace_s, err) < 0 ||
        df_json_add_num(spec, "pendingSeconds", (double)config->timeout_pending_s, err) < 0)
        return -1;
    *ret = DF_TAKE(task);
    return 0;
}

static int add_class(struct df_standby_pool *pool, const cJSON *class, struct df_err *err)
{
    DF_CLEANUP(df_demand_cleanup) struct df_demand *d = NULL;
    const cJSON *standby = df_json_at(class, "standby");
    if (!standby)
        return 0;
    d = calloc(1, sizeof(*d));
    if (!d)
        return df_fail_oom(err);
    d->min = df_json_int(standby, "min", 0);
    d->max = df_json_int(standby, "max", d->min);
    if (task_of_class(pool->c->s->config, class->string, &d->task, err) < 0 ||
        df_step_preparation(pool->c->s->config, NULL, &d->preparation, err) < 0 ||
        df_demand_form(pool->c->s, pool->engine, d->task, &d->form, err) < 0 ||
        df_demand_add(pool, d, err) < 0)
        return df_err_wrap(err, "classes.%s.standby", class->string);
    d = NULL;
    return 0;
}

static int add_classes(struct df_standby_pool *pool, struct df_err *err)
{
    const cJSON *class;
    cJSON_ArrayForEach (class, pool->c->s->config->classes)
        if (add_class(pool, class, err) < 0)
            return -1;
    return 0;
}

void df_standby_pool_free(struct df_standby_pool *pool)
{
    while (pool->count)
        df_demand_free(pool->demands[--pool->count]);
    (void)pthread_cond_destroy(&pool->changed);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int df_standby_pool_start(struct df_control *c, struct df_standby_pool **ret, struct df_err *err)
{
    struct df_engine *e = df_engine_find(&c->s->engines, c->s->config->engine);
    *ret = NULL;
    if (!c->s->standby)
        return 0;
    if (!e || !e->ops->runner || !e->ops->runner->standbys) {
        df_standby_open(c->s->standby); /* those of another configuration are over */
        return 0;
    }
    struct df_standby_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return df_fail_oom(err);
    pool->c = c;
    pool->engine = e;
    pool->runners = c->s->standby;
    (void)pthread_mutex_init(&pool->lock, NULL);
    df_cond_init(&pool->changed);
    int failed = add_classes(pool, err);
    if (!failed) {
        failed = pthread_create(&pool->thread, NULL, work, pool);
        if (failed)
            failed = df_fail_errno(err, failed, "start the thread of standby runners");
    }
    if (failed) {
        df_standby_pool_free(pool);
        return -1;
    }
    *ret = pool;
    return 0;
}

void df_standby_pool_stop(struct df_standby_pool *pool)
{
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stopped = true;
    (void)pthread_cond_signal(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_join(pool->thread, NULL);
    df_standby_pool_free(pool);
}

/* ---- what the engine tells ---- */

void df_standby_notify(struct df_control *c, const char *name)
{
    char uid[DF_STANDBY_STEP] = "";
    DF_SHARED const cJSON *task = NULL;
    if (!c->s->standby || !df_standby_is(name))
        return;
    df_standby_step(c->s->standby, name, uid);
    if (uid[0] && df_store_look_by_uid(c->s->store, DF_KIND_TASK_ACTION, uid, &task, NULL) == 0)
        df_queue_wake(c->queue, DF_KIND_TASK_ACTION, df_json_str(task, "metadata.name"));
}

/* ---- a pass over a run ---- */

/* An apply that is there and has not begun takes the runner itself: its demand is left alone. One
 * that is live has begun, though its document may lack the reference yet. */
static bool is_about_to_begin(const cJSON *run, const cJSON *apply)
{
    return apply && !df_task_is_final(apply) && !df_json_at(apply, "status.engineRef") &&
           !df_label_has(apply, DF_LABEL_LIVE) && !df_run_is_final(run);
}

/* Is it decided that the plan is applied, or may it be soon? *ret_left_ms: only for so long, while
 * a person is asked; 0: nobody is. */
static bool is_likely(const struct df_control *c, const struct df_run_view *v, int64_t *ret_left_ms)
{
    int64_t now_us = df_real_us();
    *ret_left_ms = 0;
    if (df_apply_window_opens(df_json_at(v->executor, "spec.applyWindow"), now_us) > now_us)
        return false;
    if (!df_streq(df_run_phase(v->run), "WaitingApproval"))
        return df_approval_is_automatic(&v->approval, v->run, v->executor);
    *ret_left_ms = c->s->config->kube_ahead_s * 1000 -
                   (now_us - df_task_ended_at(df_run_latest(v), now_us)) / 1000;
    return c->s->config->kube_ahead_s && *ret_left_ms > 0;
}

/* Does the run come to its apply, and is its plan at work, or has it found something to apply? */
static bool wants_runner(const struct df_control *c, const struct df_run_view *v)
{
    const struct df_recipe *recipe = df_recipe_of(v->run);
    const cJSON *plan = v->steps[0];
    bool has_apply = df_recipe_apply(recipe) < recipe->count;
    bool has_work =
        plan && (df_task_is_final(plan)
                     ? df_task_succeeded(plan) && df_json_bool(plan, "status.hasChanges", false)
                     : df_task_has_runner(plan));
    return c->s->config->kube_apply_ahead && has_work && has_apply && !df_run_apply(v) &&
           !df_shared_pod_guest(plan) && !df_run_is_final(v->run) &&
           !df_json_at(v->run, "spec.cancel");
}

void df_standby_forget(struct df_control *c, const char *run)
{
    struct df_standby_pool *pool = c->standby_pool;
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    df_demand_drop(pool, run);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* What the runner for the apply may get ready is known with the source of the plan. */
static int prepare(struct df_standby_pool *pool, struct df_demand *d, const cJSON *plan,
                   struct df_err *err)
{
    if (d->preparation || !df_json_at(plan, "status.source.treeDigest"))
        return 0;
    (void)pthread_cond_signal(&pool->changed);
    return df_step_preparation(pool->c->s->config, plan, &d->preparation, err);
}

static void update_demand(struct df_standby_pool *pool, const char *run, const cJSON *plan,
                          int64_t left_ms)
{
    struct df_err why = {0};
    (void)pthread_mutex_lock(&pool->lock);
    size_t i = df_demand_find(pool, run);
    if (i < pool->count) {
        pool->demands[i]->until_ms = left_ms ? df_mono_ms() + left_ms : 0;
        if (prepare(pool, pool->demands[i], plan, &why) < 0)
            df_debug("run %s: the runner for its apply gets nothing ready: %s", run, why.message);
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

void df_standby_want(struct df_control *c, const struct df_run_view *v)
{
    struct df_standby_pool *pool = c->standby_pool;
    const char *name = df_json_str(v->run, "metadata.name");
    struct df_err why = {0};
    int64_t left_ms = 0;
    if (!pool || is_about_to_begin(v->run, df_run_apply(v)))
        return;
    if (!wants_runner(c, v) || !is_likely(c, v, &left_ms)) {
        df_standby_forget(c, name);
        return;
    }
    if (!df_demand_has(pool, name) && df_demand_apply(pool, v->run, &why) < 0)
        df_debug("run %s: no standby runner for its apply: %s", name, why.message);
    update_demand(pool, name, v->steps[0], left_ms);
}

/* ---- a pass over a step ---- */

/* A step that lost its first attempt, or whose pod stays for another one, gets a Job of its own. */
static bool may_stand_in(const struct df_task_pass *p)
{
    return p->c->standby_pool && p->engine == p->c->standby_pool->engine &&
           !df_json_at(p->task, "status.engineRef") && !df_label_has(p->task, DF_LABEL_LIVE) &&
           p->observed.phase == DF_ENGINE_ABSENT && !df_shared_pod_guest(p->task) &&
           !df_standby_is_empty(p->c->s->standby);
}

static int take(struct df_standby_pool *pool, const struct df_standby_form *form, cJSON **ret,
                struct df_err *err)
{
    (void)pthread_mutex_lock(&pool->lock);
    int result = df_standby_take(pool->runners, form, ret, err);
    if (result == 0 && *ret) {
        pool->taken_ms = df_mono_ms();
        (void)pthread_cond_signal(&pool->changed);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return result;
}

int df_standby_find(struct df_task_pass *p, struct df_err *err)
{
    struct df_standby_form form = {0};
    struct df_err why = {0};
    if (!may_stand_in(p) || df_demand_form(p->c->s, p->engine, p->task, &form, &why) < 0)
        return 0; /* the Job of its own tells what is wrong */
    return take(p->c->standby_pool, &form, &p->runner, err);
}

void df_standby_give_back(const struct df_task_pass *p, const struct df_err *why)
{
    const char *id = df_shared_pod_host_of(p->runner);
    if (why && !df_streq(why->reason, "Conflict"))
        df_standby_remove(p->c->s->standby, id);
    else
        df_standby_return(p->c->s->standby, id);
}

/* For how long standby runners make room for the pod of this step; 0: it does not need any, or it
 * has waited for so long that their places are not what it lacks: it may be too large for every
 * node. */
static int64_t crowd_left_ms(const struct df_task_pass *p)
{
    bool finds_no_place =
        !df_task_is_final(p->task) && !df_task_has_runner(p->task) && p->observed.lacks_room;
    int64_t now_us = df_real_us(), since_us = p->observed.since_us; /* 0: a quota refuses its Job */
    int64_t age_ms = (since_us ? now_us - since_us : df_task_age_us(p->task, now_us)) / 1000;
    return finds_no_place && age_ms < CROWD_MS ? CROWD_MS - age_ms : 0;
}

static void note_crowd(struct df_standby_pool *pool, int64_t left_ms)
{
    int64_t until_ms = df_mono_ms() + left_ms;
    (void)pthread_mutex_lock(&pool->lock);
    if (until_ms > pool->crowded_until_ms)
        pool->crowded_until_ms = until_ms;
    (void)pthread_cond_signal(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
}

void df_standby_observe(struct df_task_pass *p)
{
    const char *id = df_shared_pod_host(p->task);
    int64_t crowd_ms = p->c->standby_pool ? crowd_left_ms(p) : 0;
    if (crowd_ms)
        note_crowd(p->c->standby_pool, crowd_ms);
    if (!p->c->s->standby || !df_standby_is(id))
        return;
    if (df_task_is_final(p->task) && !df_task_pass_is_alive(p))
        df_standby_remove(p->c->s->standby, id);
    else
        df_standby_offer(p->c->s->standby, id, p->step.uid);
}

void df_standby_leave(struct df_task_pass *p)
{
    const char *id = df_shared_pod_host(p->task);
    char step[DF_STANDBY_STEP] = "";
    if (!p->c->s->standby || !df_standby_is(id))
        return;
    df_info("step %s gets a pod of its own: the standby runner %s did not take it", p->step.name,
            id);
    df_standby_step(p->c->s->standby, id, step);
    if (!df_streq(step, p->step.uid))
        return; /* another one's, or gone */
    df_standby_remove(p->c->s->standby, id);
    df_standby_end(p->c->s, p->engine, id);
}
