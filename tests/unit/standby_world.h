/*
 * standby_world.h - a control loop over a cluster with standby runners, and words for it: the Jobs
 * of runners, what runners do, and the runs of the executor net. Include instead of control_loop.h,
 * behind cmocka.h and jwt_maker.h; make_keys() and free_keys() of pod_tokens.h are for the group of
 * tests.
 */
#ifndef DF_TEST_STANDBY_WORLD_H
#define DF_TEST_STANDBY_WORLD_H

#include <sched.h>
#include <stdatomic.h>

#include "spawner/control/loop.h"
#include "spawner/control/standby/standby_parts.h"
#include "tests/unit/control_loop.h"
#include "tests/unit/standby_engine.h"

#define PLAN "net-1-plan"
#define APPLY "net-1-apply"

/* ---- the clock ---- */

static atomic_int_least64_t skipped_us, stopped_us; /* stopped_us 0: the clock goes */

static inline int64_t mono_us(void)
{
    int64_t stopped = atomic_load(&stopped_us);
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return stopped ? stopped
                   : (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + atomic_load(&skipped_us);
}

static inline int64_t real_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline int random_bytes(void *bytes, size_t n)
{
    return getentropy(bytes, n);
}

/* The pool looks at once. */
static inline void wake_pool(struct world *w)
{
    struct df_standby_pool *pool = w->s.control->standby_pool;
    (void)pthread_mutex_lock(&pool->lock);
    (void)pthread_cond_signal(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* What waits by the clock waits until the test skips its time. */
static inline void stop_clock(void)
{
    atomic_store(&stopped_us, mono_us());
}

static inline void skip_seconds(struct world *w, int64_t seconds)
{
    (void)atomic_fetch_add(atomic_load(&stopped_us) ? &stopped_us : &skipped_us, seconds * 1000000);
    wake_pool(w);
}

/* ---- the world ---- */

/* With applies ahead; its loop is not started. */
static inline int pool_setup(void **state)
{
    static const struct df_clock clock = {mono_us, real_us, random_bytes};
    atomic_store(&skipped_us, 0);
    atomic_store(&stopped_us, 0);
    df_clock_install(&clock);
    if (pods_open(state) < 0)
        return -1;
    struct world *w = *state;
    cluster_open();
    w->config.kube_apply_ahead = true;
    return df_standby_new(&w->s.standby, NULL);
}

static inline int pool_teardown(void **state)
{
    struct world *w = *state;
    struct df_standby *runners = w->s.standby;
    cJSON *classes = w->config.classes;
    int result = world_teardown(state);
    df_standby_free(runners);
    cJSON_Delete(classes);
    return result;
}

static inline void new_world(void **state)
{
    assert_int_equal(pool_teardown(state) + pool_setup(state), 0);
}

static inline void end_leader(struct world *w)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    df_standby_free(w->s.standby);
    w->s.standby = NULL;
}

/* Of a configuration without standby runners. */
static inline void begin_plain_leader(struct world *w)
{
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    start(w);
}

/* It knows what is stored and what the cluster has. */
static inline void begin_leader(struct world *w)
{
    assert_int_equal(df_standby_new(&w->s.standby, NULL), 0);
    begin_plain_leader(w);
}

static inline void change_leader(struct world *w)
{
    end_leader(w);
    begin_leader(w);
}

static inline void await_held(struct world *w)
{
    await_true(w, cluster.is_held);
}

static inline void release(struct world *w)
{
    lock(w);
    cluster.held_request = cluster.held_answer = 0;
    cluster.held_form = NULL;
    unlock(w);
}

static inline void fail_lists(struct world *w, bool they_fail)
{
    lock(w);
    cluster.list_error = (struct df_err){.cls = they_fail ? DF_ERR_RETRY : DF_ERR_NONE,
                                         .message = "the API server is away"};
    unlock(w);
}

/* ---- Jobs of standby runners ---- */

/* How many were made for the apply of this run; "": for any step. */
static inline size_t jobs_for(struct world *w, const char *run)
{
    size_t n = 0;
    lock(w);
    for (size_t i = 0; i < cluster.count; i++)
        n += df_streq(cluster.jobs[i].form.run, run);
    unlock(w);
    return n;
}

static inline size_t jobs_made(struct world *w)
{
    lock(w);
    size_t n = cluster.count;
    unlock(w);
    return n;
}

/* The caller holds the lock. NULL: there are not so many. */
static inline const struct standby_job *job_number(const char *run, size_t number)
{
    for (size_t i = 0; i < cluster.count; i++)
        if (df_streq(cluster.jobs[i].form.run, run) && --number == 0)
            return &cluster.jobs[i];
    return NULL;
}

/* The Job of this number for the apply of the run, when it is made; the pool may not know it
 * yet. */
static inline struct standby_job await_job(struct world *w, const char *run, size_t number)
{
    struct standby_job ret;
    await_true(w, job_number(run, number));
    lock(w);
    ret = *job_number(run, number);
    unlock(w);
    return ret;
}

static inline bool is_known(struct world *w, const char *id)
{
    DF_JSON cJSON *ref = NULL;
    assert_int_equal(df_standby_ref(w->s.standby, id, &ref, NULL), 0);
    return ref;
}

/* The same, when a step can get its runner. */
static inline struct standby_job await_runner(struct world *w, const char *run, size_t number)
{
    struct standby_job j = await_job(w, run, number);
    while (!is_known(w, j.id))
        (void)sched_yield();
    return j;
}

static inline void await_removed(struct world *w, const char *id)
{
    await_true(w, standby_find(id)->is_removed);
}

static inline bool is_removed(struct world *w, const char *id)
{
    lock(w);
    bool is = standby_find(id)->is_removed;
    unlock(w);
    return is;
}

static inline void set_age(struct world *w, const char *id, int64_t age_ms)
{
    lock(w);
    standby_find(id)->age_ms = age_ms;
    unlock(w);
}

/* ---- a Job that nobody wants ---- It is removed when no other one is missing, and after those
 * that were made before it. So its end says that the pool has done what there was to do. */

#define LEFT_OVER "standby-left"

static inline void leave_job(struct world *w, const char *id, const char *run)
{
    const struct df_standby_form form = {.digest = "another", .seconds = 100};
    lock(w);
    df_copy(standby_note(id, &form)->form.run, sizeof(form.run), run);
    (void)snprintf(fake_find(&w->engine, id)->uid, 40, "%s", id);
    unlock(w);
}

/* An earlier leader made it: this one finds it when it begins. */
static inline void leave_over(struct world *w)
{
    leave_job(w, LEFT_OVER, "gone-1");
}

/* This leader has it. */
static inline void add_left_over(struct world *w)
{
    DF_JSON cJSON *ref = ref_of(LEFT_OVER, LEFT_OVER);
    leave_over(w);
    lock(w);
    const struct df_standby_form form = standby_find(LEFT_OVER)->form;
    unlock(w);
    assert_int_equal(df_standby_add(w->s.standby, ref, &form, 0, NULL), 0);
    wake_pool(w);
}

static inline void await_pool(struct world *w)
{
    add_left_over(w);
    await_removed(w, LEFT_OVER);
}

/* So many runners of a form that no step has. */
static inline void fill_list(struct world *w, int number)
{
    static const struct df_standby_form form = {.digest = "another", .seconds = 100};
    for (int i = 0; i < number; i++) {
        DF_FREE char *id = df_strf("standby-%d", i);
        DF_JSON cJSON *ref = ref_of(id, id);
        assert_int_equal(df_standby_add(w->s.standby, ref, &form, 0, NULL), 0);
    }
}

/* ---- what runners do ---- */

static inline bool stays(void *arg)
{
    (void)arg;
    return false;
}

static inline int ask(struct world *w, const char *id, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = json(CLAIM_B);
    DF_FREE char *token = token_of_pod(&pod_b, id);
    const struct df_standby_request r = {.id = id, .token = token, .body = body, .gone = stays};
    DF_JSON cJSON *preparation = NULL;
    return df_runner_claim(&w->s, &r, ret, &preparation, err);
}

/* Asks until it has claimed a step. The pool knows it, or it will when it has the list. */
static inline struct runner claim_offer(struct world *w, const char *id)
{
    struct runner r = {.w = w};
    cJSON *doc = NULL;
    while (!doc) {
        struct df_err err = {0};
        if (ask(w, id, &doc, &err) < 0 && !df_streq(err.reason, "NotListedYet"))
            fail_msg("%s: %s", id, err.message);
    }
    (void)snprintf(r.name, sizeof(r.name), "%s", df_json_str(doc, "name"));
    (void)snprintf(r.uid, sizeof(r.uid), "%s", df_json_str(doc, "uid"));
    (void)snprintf(r.action, sizeof(r.action), "%s", df_json_str(doc, "action"));
    (void)snprintf(r.step_token, sizeof(r.step_token), "%s", df_json_str(doc, "stepToken"));
    df_json_wipe(doc);
    return r;
}

static inline void assert_over(struct world *w, const char *id)
{
    cJSON *doc = NULL;
    struct df_err err;
    assert_fails(ask(w, id, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    assert_null(doc);
}

/* Waits until the step has a Job of its own, and claims it there. As a runner does, it asks again
 * while the reference to the Job is not written. */
static inline struct runner claim_own(struct world *w, const char *step)
{
    cJSON *doc = NULL;
    for (;;) {
        struct df_err err = {0};
        (void)await_start(w, step);
        const struct fake_step job = fake_look(w, step);
        if (claim_as(w, &job, &pod_a, CLAIM_A, &doc, &err) == 0) {
            struct runner r = runner_of(w, &job, doc);
            df_json_wipe(doc);
            return r;
        }
        if (err.cls != DF_ERR_RETRY)
            fail_msg("claim of %s: %s", step, err.message);
        (void)sched_yield();
    }
}

/* The result, and the end of the pod in which the step was. */
static inline void finish(const struct runner *r, const char *job, const char *result)
{
    struct df_err err = {0};
    if (try_result(r, result, &err) < 0)
        fail_msg("result of %s: %s", r->name, err.message);
    end_processes(r->w, job, 0, "exited with code 0");
}

static inline void finish_plan(const struct runner *r, const char *job, const char *run)
{
    put_plan(r, run);
    finish(r, job, PLANNED);
}

/* ---- runs of net ---- */

static inline void start_with_run(struct world *w, const char *spec, const char *request)
{
    make_executor(w, "net", spec);
    start(w);
    run(w, "net", request);
}

/* The runner of the apply of net-1, whose plan is claimed. */
static inline struct standby_job begin_ahead(struct world *w, struct runner *ret_plan)
{
    start_with_run(w, "", AUTO);
    *ret_plan = claim_own(w, PLAN);
    return await_runner(w, "net-1", 1);
}

/* The status of the run net-1 names the step, or the runner. */
static inline void await_noted(struct world *w, const char *word)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *steps = value_of(w, DF_KIND_RUN, "net-1", "status.steps");
        if (strstr(steps, word))
            return;
        wait_for_change(w, mark);
    }
}

static inline void end_apply(struct world *w, const struct runner *apply, const char *job)
{
    finish(apply, job, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
}

/* ---- a step that was taken away by force ---- */

static inline void take_away(struct world *w, const char *step)
{
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_TASK_ACTION, step, NULL, NULL), 0);
}

/* The pod of a lost step of net-1 ends, and the run hears of it. */
static inline void end_lost(struct world *w, const char *id)
{
    end_processes(w, id, 1, "it was told to end");
    df_queue_wake(w->s.control->queue, DF_KIND_RUN, "net-1");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    await_removed(w, id);
}

/* ---- a class ---- */

#define KEEPS_ONE "{'small':{'standby':{'min':1,'max':1}}}"

static inline void start_with_class(struct world *w, const char *classes)
{
    w->config.classes = json(classes);
    make_executor(w, "net", "'class':'small'");
    start(w);
}

/* The value, when there is one. The caller frees. */
static inline char *await_some(struct world *w, enum df_kind kind, const char *name,
                               const char *path)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        char *value = value_of(w, kind, name, path);
        if (*value)
            return value;
        free(value);
        wait_for_change(w, mark);
    }
}

/* The runner to which the step is offered, when it is. The caller frees. */
static inline char *await_host(struct world *w, const char *step)
{
    return await_some(w, DF_KIND_TASK_ACTION, step, "status.engineRef.hostUid");
}

/* Its plan is offered to the runner of its class. */
static inline void run_in(struct world *w, const char *id)
{
    run(w, "net", ASKING);
    await_value(w, DF_KIND_TASK_ACTION, PLAN, "status.engineRef.hostUid", id);
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, pool_setup, pool_teardown)

#endif
