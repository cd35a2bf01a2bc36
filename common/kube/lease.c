/*
 * The Lease of leader election. One thread holds or waits: read hold() and what it calls. What was
 * seen of the Lease and what is written to it are separate parts.
 */
#include "common/kube/lease.h"

#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/kube/watch.h"

#define ADDRESS "dayfly.dev/address"
#define NEVER INT64_MAX

struct df_lease {
    struct df_kube *k;
    char *name_space, *name, *identity, *address, *select;
    int64_t duration_us;
    void (*changed)(void *arg, bool held);
    void (*failed)(void *arg, const struct df_err *err);
    void *arg;
    struct df_kube_watch *watch;
    pthread_t thread;
    bool started;
    volatile bool stop;
    int64_t held_until_us; /* monotonic; atomic; 0: not held */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t news;
    cJSON *seen;     /* the Lease as it was seen last; NULL: none exists */
    int64_t seen_us; /* when it came in this state, monotonic */
    int64_t epoch;   /* the highest ever seen: it outlives a Lease that was deleted; -1: none */
    bool listed;     /* what exists is known */
};

/* ---- being the holder ---------------------------------------------------------------------- */

static int64_t held_until(const struct df_lease *l)
{
    return __atomic_load_n(&l->held_until_us, __ATOMIC_ACQUIRE);
}

static void set_held_until(struct df_lease *l, int64_t us)
{
    __atomic_store_n(&l->held_until_us, us, __ATOMIC_RELEASE);
}

/* ---- what is seen --------------------------------------------------------------------------- */

static const char *holder_of(const cJSON *lease)
{
    const char *holder = df_json_str(lease, "spec.holderIdentity");
    return holder ? holder : "";
}

/* Under the lock. An older state than the one that is known, which a slow watch may bring behind
 * our own write, is left. */
static void see(struct df_lease *l, cJSON *lease)
{
    const char *version = df_kube_version(lease), *known = df_kube_version(l->seen);
    if (lease && known && df_kube_version_is_older(version, known)) {
        cJSON_Delete(lease);
        return;
    }
    if (!df_streq(version, known))
        l->seen_us = df_mono_us();
    cJSON_Delete(l->seen);
    l->seen = lease;
    int64_t epoch = df_json_int(lease, "spec.leaseTransitions", -1);
    l->epoch = epoch > l->epoch ? epoch : l->epoch;
    /* Whatever our clock says: who reads that another leads must not write any more. */
    if (lease && !df_streq(holder_of(lease), l->identity))
        set_held_until(l, 0);
    (void)pthread_cond_broadcast(&l->news);
}

static int on_begin(void *arg, const char *version, struct df_err *err)
{
    (void)arg;
    (void)version;
    (void)err;
    return 0;
}

static int on_apply(void *arg, const cJSON *object, struct df_err *err)
{
    struct df_lease *l = arg;
    cJSON *copy = cJSON_Duplicate(object, true);
    if (!copy)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&l->lock);
    see(l, copy);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* Somebody deleted it: it is made anew, but not before the one who held it knows. */
static void on_remove(void *arg, const cJSON *object)
{
    struct df_lease *l = arg;
    (void)object;
    (void)pthread_mutex_lock(&l->lock);
    see(l, NULL);
    (void)pthread_mutex_unlock(&l->lock);
}

static void on_listed(void *arg)
{
    struct df_lease *l = arg;
    (void)pthread_mutex_lock(&l->lock);
    l->listed = true;
    (void)pthread_cond_broadcast(&l->news);
    (void)pthread_mutex_unlock(&l->lock);
}

static void on_failed(void *arg, const struct df_err *err)
{
    struct df_lease *l = arg;
    if (l->failed)
        l->failed(l->arg, err);
}

/* Under the lock: when it may be taken, by our own clock. */
static int64_t free_at_us(const struct df_lease *l)
{
    if (!l->listed)
        return NEVER;
    int64_t own_s = l->duration_us / 1000000;
    int64_t lasts_s = df_json_int(l->seen, "spec.leaseDurationSeconds", own_s);
    bool is_free = l->seen && !*holder_of(l->seen);
    return is_free ? l->seen_us : l->seen_us + (lasts_s > 0 ? lasts_s : own_s) * 1000000;
}

/* ---- what is written ------------------------------------------------------------------------ */

static int set_number(cJSON *spec, const char *key, int64_t value, struct df_err *err)
{
    return df_json_set(spec, key, cJSON_CreateNumber((double)value), err);
}

static int set_spec(const struct df_lease *l, cJSON *lease, int64_t epoch, const char *holder,
                    struct df_err *err)
{
    const char *before = holder_of(lease);
    bool taken = *holder && !df_streq(before, holder);
    char now[DF_TIME_LEN];
    (void)df_time_format(df_real_us(), now);
    cJSON *metadata = df_json_object_at(lease, "metadata");
    cJSON *notes = metadata ? df_json_object_at(metadata, "annotations") : NULL;
    cJSON *spec = df_json_object_at(lease, "spec");
    if (!notes || !spec)
        return df_fail_oom(err);
    if (df_json_set_str(metadata, "name", l->name, err) < 0 ||
        df_json_set_str(notes, ADDRESS, *holder && l->address ? l->address : "", err) < 0 ||
        df_json_set_str(spec, "holderIdentity", holder, err) < 0 ||
        set_number(spec, "leaseDurationSeconds", l->duration_us / 1000000, err) < 0 ||
        set_number(spec, "leaseTransitions", epoch + (taken ? 1 : 0), err) < 0 ||
        (taken && df_json_set_str(spec, "acquireTime", now, err) < 0))
        return -1;
    return df_json_set_str(spec, "renewTime", now, err);
}

static int send(struct df_lease *l, cJSON *lease, cJSON **ret, struct df_err *err)
{
    struct df_kube_at at = {&df_kube_leases, l->name_space, l->name, NULL, NULL};
    if (df_kube_version(lease))
        return df_kube_update(l->k, &at, lease, ret, err);
    if (df_json_set_str(lease, "apiVersion", "coordination.k8s.io/v1", err) < 0 ||
        df_json_set_str(lease, "kind", "Lease", err) < 0)
        return -1;
    at.name = NULL;
    return df_kube_create(l->k, &at, lease, ret, err);
}

/* Writes this holder over the state that was seen: CONFLICT when that is not the last. */
static int put(struct df_lease *l, const char *holder, struct df_err *err)
{
    (void)pthread_mutex_lock(&l->lock);
    DF_JSON cJSON *lease = l->seen ? cJSON_Duplicate(l->seen, true) : cJSON_CreateObject();
    int64_t epoch = l->epoch;
    (void)pthread_mutex_unlock(&l->lock);
    cJSON *stored = NULL;
    if (!lease)
        return df_fail_oom(err);
    if (set_spec(l, lease, epoch, holder, err) < 0 || send(l, lease, &stored, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    see(l, stored);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* ---- holding -------------------------------------------------------------------------------- */

bool df_lease_is_held(const struct df_lease *l)
{
    return df_mono_us() < held_until(l);
}

static int renew(struct df_lease *l, struct df_err *err)
{
    int64_t sent_us = df_mono_us();
    if (put(l, l->identity, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    if (df_streq(holder_of(l->seen), l->identity)) /* still: the watch may have told of another */
        set_held_until(l, sent_us + l->duration_us * 2 / 3);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

static void wait_until(struct df_lease *l, int64_t us, bool for_news)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (!df_stopped(&l->stop) && df_mono_us() < us) {
        if (us == NEVER)
            (void)pthread_cond_wait(&l->news, &l->lock);
        else
            (void)pthread_cond_timedwait(&l->news, &l->lock, &t);
        if (for_news)
            return;
    }
}

/* Somebody else wrote it although it was ours: he has it, or it was touched by hand. */
static bool is_lost(struct df_lease *l)
{
    (void)pthread_mutex_lock(&l->lock);
    bool lost = l->seen && !df_streq(holder_of(l->seen), l->identity);
    (void)pthread_mutex_unlock(&l->lock);
    return lost;
}

static int refresh(struct df_lease *l, struct df_err *err)
{
    const struct df_kube_at at = {&df_kube_leases, l->name_space, l->name, NULL, NULL};
    cJSON *lease = NULL;
    struct df_err why = {0};
    if (df_kube_get(l->k, &at, &lease, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    (void)pthread_mutex_lock(&l->lock);
    see(l, lease);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* Until it is lost, or given back. */
static void hold(struct df_lease *l)
{
    int64_t pause_us = l->duration_us / 6;
    while (!df_stopped(&l->stop) && df_lease_is_held(l)) {
        (void)pthread_mutex_lock(&l->lock);
        wait_until(l, df_mono_us() + pause_us, false);
        (void)pthread_mutex_unlock(&l->lock);
        struct df_err err = {0};
        if (df_stopped(&l->stop) || is_lost(l) || !df_lease_is_held(l))
            return;
        pause_us = l->duration_us / 6;
        if (renew(l, &err) == 0)
            continue;
        on_failed(l, &err);
        if (err.cls == DF_ERR_CONFLICT)
            (void)refresh(l, &err);
        pause_us = l->duration_us / 30;
    }
}

/* Waits until it may be taken, and tries. */
static bool take(struct df_lease *l)
{
    struct df_err err = {0};
    (void)pthread_mutex_lock(&l->lock);
    while (!df_stopped(&l->stop) && free_at_us(l) > df_mono_us())
        wait_until(l, free_at_us(l), true);
    (void)pthread_mutex_unlock(&l->lock);
    if (df_stopped(&l->stop))
        return false;
    if (renew(l, &err) == 0)
        return true;
    if (err.cls != DF_ERR_CONFLICT) /* else another was faster */
        on_failed(l, &err);
    (void)pthread_mutex_lock(&l->lock);
    wait_until(l, df_mono_us() + l->duration_us / 30, true);
    (void)pthread_mutex_unlock(&l->lock);
    return false;
}

static void *run(void *arg)
{
    struct df_lease *l = arg;
    while (!df_stopped(&l->stop)) {
        if (!take(l))
            continue;
        l->changed(l->arg, true);
        hold(l);
        if (df_stopped(&l->stop))
            break; /* given back by df_lease_stop() */
        set_held_until(l, 0);
        l->changed(l->arg, false);
    }
    return NULL;
}

void df_lease_look(struct df_lease *l, struct df_lease_view *ret)
{
    (void)pthread_mutex_lock(&l->lock);
    const char *address = df_kube_annotation(l->seen, ADDRESS);
    (void)snprintf(ret->holder, sizeof(ret->holder), "%s", holder_of(l->seen));
    (void)snprintf(ret->address, sizeof(ret->address), "%s", address ? address : "");
    ret->epoch = l->epoch;
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- its life ------------------------------------------------------------------------------- */

static int copy_options(struct df_lease *l, const struct df_lease_options *o, struct df_err *err)
{
    l->name_space = strdup(o->name_space);
    l->name = strdup(o->name);
    l->identity = strdup(o->identity);
    l->address = o->address ? strdup(o->address) : NULL;
    l->select = df_strf("metadata.name=%s", o->name);
    l->duration_us = o->duration_s * 1000000;
    l->changed = o->changed;
    l->failed = o->failed;
    l->arg = o->arg;
    return l->name_space && l->name && l->identity && l->select && (l->address || !o->address)
               ? 0
               : df_fail_oom(err);
}

static void init_sync(struct df_lease *l)
{
    df_cond_init(&l->news);
    (void)pthread_mutex_init(&l->lock, NULL);
}

static int start_watch(struct df_lease *l, struct df_err *err)
{
    const struct df_kube_watch_options w = {
        .resource = &df_kube_leases,
        .name_space = l->name_space,
        .select = {.fields = l->select},
        .to = {on_begin, on_apply, on_remove, on_listed, on_failed, l},
        /* A stream that broke unseen must not cost a whole lease. */
        .idle_ms = 90000,
        .backoff_max_ms = l->duration_us / 1000 / 6};
    return df_kube_watch_start(l->k, &w, &l->watch, err);
}

int df_lease_new(struct df_kube *k, const struct df_lease_options *o, struct df_lease **ret,
                 struct df_err *err)
{
    struct df_lease *l = calloc(1, sizeof(*l));
    if (!l)
        return df_fail_oom(err);
    l->k = k;
    l->epoch = -1;
    init_sync(l);
    if (copy_options(l, o, err) < 0) {
        df_lease_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

int df_lease_start(struct df_lease *l, struct df_err *err)
{
    if (start_watch(l, err) < 0)
        return -1;
    int failed = pthread_create(&l->thread, NULL, run, l);
    if (failed)
        return df_fail_errno(err, failed, "start the thread of the lease");
    l->started = true;
    return 0;
}

void df_lease_stop(struct df_lease *l)
{
    (void)pthread_mutex_lock(&l->lock);
    __atomic_store_n(&l->stop, true, __ATOMIC_RELAXED);
    (void)pthread_cond_broadcast(&l->news);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->started)
        (void)pthread_join(l->thread, NULL);
    l->started = false;
    bool held = df_lease_is_held(l);
    set_held_until(l, 0);
    if (held)
        (void)put(l, "", NULL); /* else the others wait for its end */
    df_kube_watch_stop(l->watch);
    l->watch = NULL;
}

void df_lease_free(struct df_lease *l)
{
    if (!l)
        return;
    df_kube_watch_stop(l->watch);
    cJSON_Delete(l->seen);
    (void)pthread_cond_destroy(&l->news);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->name_space);
    free(l->name);
    free(l->identity);
    free(l->address);
    free(l->select);
    free(l);
}
