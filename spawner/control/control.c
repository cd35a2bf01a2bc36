/*
 * control.c - the loop: the store's watcher puts keys of changed documents into the queue, workers
 * take them out and call the reconciler of their kind. Read on_change(), then work_on(); what the
 * reconcilers do is in runs.c, tasks.c and executors.c.
 */
#include "spawner/control/loop.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/control/documents/restored.h"
#include "spawner/control/hourly.h"
#include "spawner/control/lock_queue.h"
#include "spawner/control/standby/standby_pool.h"
#include "spawner/engine/workflow/workflow.h"
#include "spawner/journal/events.h"
#include "spawner/journal/journal.h"
#include "spawner/journal/reporter.h"
#include "spawner/requests/requests.h"
#include "spawner/requests/revisions.h"
#include "spawner/steps/sealed.h"
#include "spawner/steps/waits.h"

/* ---- waking ---- */

void df_control_notify(struct df_control *c, const char *name)
{
    if (!atomic_load(&c->working)) /* df_control_start() queues every unfinished document */
        return;
    df_queue_wake(c->queue, DF_KIND_TASK_ACTION, name);
    if (df_starts_with(name, DF_WORKFLOW_PREFIX))
        df_lock_queue_wake(c->s->store, c->queue, DF_KIND_TASK_ACTION, name);
    df_standby_notify(c, name);
}

typedef int (*reconciler)(struct df_control *c, const char *name, int64_t *ret_wake_us,
                          struct df_err *err);

/* NULL: a kind of which nothing follows. */
static const reconciler reconcilers[DF_KIND_COUNT] = {
    [DF_KIND_EXECUTOR] = df_reconcile_executor,
    [DF_KIND_RUN] = df_reconcile_run,
    [DF_KIND_TASK_ACTION] = df_reconcile_task,
    [DF_KIND_REVISION] = df_reconcile_revision,
};

/* The store notifies of the service's own writes in the writer's thread (store.h), so a pass that
 * wrote its own document decides itself whether another pass follows. */
static void on_change(void *arg, const struct df_store_event *event)
{
    struct df_control *c = arg;
    if (!atomic_load(&c->working) || event->is_noop || !reconcilers[event->kind])
        return;
    if (event->is_external)
        df_queue_wake(c->queue, event->kind, event->name);
    else
        df_queue_changed(c->queue, event->kind, event->name);
}

struct kind_walk {
    struct df_control *c;
    enum df_kind kind;
};

static int wake_doc(const cJSON *doc, void *arg, struct df_err *err)
{
    const struct kind_walk *w = arg;
    if (w->kind == DF_KIND_TASK_ACTION && df_slots_enqueue(&w->c->slots, doc, err) < 0)
        return -1;
    df_queue_wake(w->c->queue, w->kind, df_json_str(doc, "metadata.name"));
    return 0;
}

/* A df_store_visit. */
static int adopt_wait(const cJSON *task, void *arg, struct df_err *err)
{
    struct df_control *c = arg;
    (void)err;
    df_memory_adopt_wait(&c->s->memory, task);
    return 0;
}

/* Puts every unfinished document into the queue. */
static int wake_unfinished(struct df_control *c, struct df_err *err)
{
    for (int kind = 0; kind < DF_KIND_COUNT; kind++) {
        struct kind_walk w = {c, (enum df_kind)kind};
        if (reconcilers[kind] &&
            df_store_each(c->s->store, w.kind, DF_LABEL_UNFINISHED "=true", wake_doc, &w, err) < 0)
            return df_err_wrap(err, "look for what is unfinished");
    }
    return 0;
}

/* A df_store_visit: while nobody worked the run of a busy executor may have vanished; a crash, or
 * an older version, may have left one without its revision. */
static int wake_busy(const cJSON *executor, void *arg, struct df_err *err)
{
    struct df_control *c = arg;
    (void)err;
    if (df_json_str(executor, "status.activeRun") || !df_revision_is_kept(c->s, executor))
        df_queue_wake(c->queue, DF_KIND_EXECUTOR, df_json_str(executor, "metadata.name"));
    return 0;
}

/* ---- the workers ---- */

static void set_log_context(const struct df_queue_key *key)
{
    df_log_context(key->kind == DF_KIND_RUN ? key->name : NULL,
                   key->kind == DF_KIND_TASK_ACTION ? key->name : NULL);
}

static int schedule_next(struct df_control *c, const struct df_queue_key *key, int64_t wake_us,
                         struct df_err *err)
{
    int64_t delay_us = wake_us - df_real_us();
    return df_queue_add(c->queue, key->kind, key->name, delay_us > 0 ? delay_us : 0, err);
}

/* Returns freed memory to the system during a burst of passes, at intervals, and after it;
 * otherwise the process would keep the memory that the burst needed. */
enum { PASSES_PER_TRIM = 1000, PASSES_PER_REST = 100 };

static void trim_memory(struct df_control *c)
{
    unsigned done = atomic_fetch_add(&c->untrimmed_passes, 1) + 1;
    if (done < PASSES_PER_REST || (done < PASSES_PER_TRIM && !df_queue_is_idle(c->queue)))
        return;
    if (atomic_exchange(&c->untrimmed_passes, 0) >=
        PASSES_PER_REST) /* only one of the workers does it */
        df_memory_trim();
}

/* A pass that fails is what its document waits for. Its runner, if it has one, may go on
 * meanwhile. */
static void tell_wait(struct df_control *c, const struct df_queue_key *key, int64_t began_us,
                      int result, const struct df_err *why)
{
    const struct df_wait_case w = {
        .kind = key->kind, .name = key->name, .what = reconcilers, .is_optional = true};
    if (result < 0)
        df_wait_failed(c->s, &w, began_us, why);
    else
        df_wait_passed(c->s, &w);
}

static void work_on(struct df_control *c, const struct df_queue_key *key)
{
    struct df_err err = {0};
    int64_t wake_us = 0, began_us = df_real_us();
    set_log_context(key);
    int result = reconcilers[key->kind](c, key->name, &wake_us, &err);
    if (result >= 0 && wake_us && schedule_next(c, key, wake_us, &err) < 0)
        result = -1;
    /* Conflict: another writer was faster, and the next pass reads what it wrote. NotListedYet: the
     * engine logs that itself, once instead of for each step. */
    bool raced = result < 0 && df_streq(err.reason, "Conflict");
    if (result < 0 && !raced && !df_streq(err.reason, "NotListedYet"))
        df_warn("%s %s: %s", df_kind_name(key->kind), key->name, err.message);
    tell_wait(c, key, began_us, result, &err);
    char labels[32];
    (void)snprintf(labels, sizeof(labels), "%s,%s", df_kind_name(key->kind),
                   result == 0 ? "ok"
                   : raced     ? "raced"
                               : "failed");
    df_metric_add(c->passes, labels, 1);
    df_queue_done(c->queue, key, result);
    df_log_context(NULL, NULL);
    trim_memory(c);
}

static void *worker_thread(void *arg)
{
    struct df_control *c = arg;
    struct df_queue_key key;
    while (df_queue_get(c->queue, &key)) {
        work_on(c, &key);
        if (df_queue_missed(c->queue) && wake_unfinished(c, NULL) < 0)
            df_queue_miss(c->queue);
    }
    return NULL;
}

static void join_workers(struct df_control *c)
{
    df_queue_close(c->queue);
    while (c->worker_count)
        (void)pthread_join(c->workers[--c->worker_count], NULL);
}

/* ---- start ---- */

int df_control_new(struct df_spawner *s, struct df_control **ret, struct df_err *err)
{
    struct df_control *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->s = s;
    c->passes = df_metric_counter("dayfly_control_passes_total",
                                  "Looks at a document by the control loop.", "kind,result");
    if (df_queue_new(&c->queue, err) < 0 || df_slots_init(&c->slots, s, c->queue, err) < 0 ||
        df_store_watch(s->store, on_change, c, err) < 0) {
        df_control_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void df_control_free(struct df_control *c)
{
    if (!c)
        return;
    df_standby_pool_stop(c->standby_pool);
    df_periodic_stop(c->hourly);
    df_reporter_stop(c->reporter);
    df_events_stop(c->events);
    df_store_unwatch(c->s->store, on_change, c);
    df_queue_free(c->queue);
    df_slots_free(&c->slots);
    df_strs_free(&c->held);
    free(c->workers);
    free(c);
}

/* Removes secrets of ended runs that a crash left in the vault. After a failure a run that ends
 * later tries again. */
static void sweep(struct df_control *c)
{
    struct df_err why = {0};
    if (df_sealed_sweep(c->s, df_real_us(), &why) < 0)
        df_warn("secrets of runs that are over are not swept yet: %s", why.message);
    else
        atomic_store(&c->swept_us, df_real_us());
}

int df_control_start(struct df_control *c, struct df_err *err)
{
    c->reachable_since_us = df_real_us();
    sweep(c);
    if (df_restored_cancel(c, err) < 0)
        return -1;
    size_t n = (size_t)c->s->config->workers;
    c->workers = calloc(n, sizeof(*c->workers));
    if (!c->workers)
        return df_fail_oom(err);
    atomic_store(&c->working, true);
    if (df_store_each(c->s->store, DF_KIND_TASK_ACTION, DF_LABEL_UNFINISHED "=true", adopt_wait, c,
                      err) < 0 ||
        wake_unfinished(c, err) < 0 ||
        df_store_each(c->s->store, DF_KIND_EXECUTOR, NULL, wake_busy, c, err) < 0 ||
        df_reporter_start(c->s, &c->reporter, err) < 0 ||
        df_events_start(c->s, &c->events, err) < 0 || df_hourly_start(c->s, &c->hourly, err) < 0 ||
        df_standby_pool_start(c, &c->standby_pool, err) < 0)
        return -1;
    for (; c->worker_count < n; c->worker_count++) {
        int failed = pthread_create(&c->workers[c->worker_count], NULL, worker_thread, c);
        if (failed) {
            join_workers(c);
            df_standby_pool_stop(DF_TAKE(c->standby_pool));
            return df_fail_errno(err, failed, "start a worker");
        }
    }
    return 0;
}

/* ---- stop ---- */

#define STOP_BY "dayfly"
#define STOP_WHY "the spawner was stopped"

struct live {
    struct df_control *c;
    cJSON *steps;
};

static bool runs_here(const struct df_control *c, const cJSON *step)
{
    struct df_engine *engine = NULL;
    return df_engine_get(&c->s->engines, df_json_str(step, "spec.engine"), &engine, NULL) == 0 &&
           engine->kind->runs_here;
}

/* A df_store_visit: adds a step of an engine on this machine to the list. */
static int add_live(const cJSON *step, void *arg, struct df_err *err)
{
    const struct live *live = arg;
    return runs_here(live->c, step) ? df_json_append(live->steps, cJSON_Duplicate(step, true), err)
                                    : 0;
}

/* *ret: the live steps of engines on this machine. */
static int list_live(struct df_control *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *steps = cJSON_CreateArray();
    struct live live = {c, steps};
    if (!steps)
        return df_fail_oom(err);
    if (df_store_each(c->s->store, DF_KIND_TASK_ACTION, DF_LABEL_LIVE "=true", add_live, &live,
                      err) < 0)
        return -1;
    *ret = DF_TAKE(steps);
    return 0;
}

/* The longest time that one of these steps may take to end after a cancel. */
static int64_t longest_grace_s(const cJSON *steps)
{
    int64_t longest = 0;
    const cJSON *step;
    cJSON_ArrayForEach (step, steps) {
        int64_t grace = df_json_int(step, "spec.graceSeconds", DF_TIMEOUT_GRACE_SECONDS);
        longest = grace > longest ? grace : longest;
    }
    return longest;
}

static void cancel_runs_of(struct df_control *c, const cJSON *steps)
{
    const cJSON *step;
    cJSON_ArrayForEach (step, steps) {
        struct df_err err = {0};
        const char *run = df_json_str(step, "spec.runRef.name");
        const char *name = df_json_str(step, "metadata.name");
        if (df_task_is_final(step))
            continue;
        if ((run ? df_request_cancel_run(c->s, run, DF_VERBS_ADMIN, STOP_BY, STOP_WHY, NULL, &err)
                 : df_request_cancel_workflow(c->s, name, STOP_BY, STOP_WHY, NULL, &err)) < 0)
            df_warn("%s %s is not canceled: %s", run ? "run" : "step", run ? run : name,
                    err.message);
    }
}

/* Who waits for steps that cannot end while states and logs cannot be stored. */
struct patience {
    int64_t end_ms,
        stored_ms; /* monotonic: when it is over; when the store was last seen to work */
};

/* Runners go on without a service, and give what they have to the next one. */
static bool is_over(struct df_control *c, struct patience *p)
{
    struct df_err why = {0};
    int64_t now_ms = df_mono_ms();
    if (df_blob_check(c->s->blobs, &why) == 0)
        p->stored_ms = now_ms;
    if (now_ms - p->stored_ms < DF_TIMEOUT_LAST_REPORTS_MS)
        return now_ms >= p->end_ms;
    df_warn(
        "stopping: steps go on without this service, and the next one takes what they could not "
        "store: %s",
        why.message);
    return true;
}

/* Cancels the runs of the live steps on this machine, and waits until no such step is left or the
 * longest grace period, with a margin, is over. */
static void cancel_live(struct df_control *c)
{
    DF_JSON cJSON *live = NULL;
    struct df_err err = {0};
    if (list_live(c, &live, &err) < 0) {
        df_error("cannot cancel what runs: %s", err.message);
        return;
    }
    cancel_runs_of(c, live);
    int64_t grace_ms = (longest_grace_s(live) + 2 * DF_TIMEOUT_MARGIN_SECONDS) * 1000;
    struct patience patience = {df_mono_ms() + grace_ms, df_mono_ms()};
    struct df_subscription any;
    df_subscribe(c->s->journal, &any, NULL, 0, false);
    for (bool waits = live->child; waits && !is_over(c, &patience);) {
        uint64_t mark = df_subscription_mark(c->s->journal, &any);
        cJSON_Delete(DF_TAKE(live));
        waits = list_live(c, &live, NULL) < 0 || live->child;
        if (waits)
            df_subscription_wait(c->s->journal, &any, mark, 1000);
    }
    df_unsubscribe(c->s->journal, &any);
}

void df_control_stop(struct df_control *c, bool cancel_steps)
{
    atomic_store(&c->draining, true);
    if (cancel_steps)
        cancel_live(c);
    join_workers(c);
    df_standby_pool_stop(DF_TAKE(c->standby_pool));
    df_periodic_stop(DF_TAKE(c->hourly));
    df_reporter_stop(DF_TAKE(c->reporter));
    df_events_stop(DF_TAKE(c->events));
}
