/*
 * The Lease of leader election. One thread holds the Lease or waits for it: read hold_lease() and
 * what it calls. Observing the Lease and writing it are separate parts.
 */
#include "common/kube/lease.h"

#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/kube/watch.h"

#define POD "dayfly.dev/holder-pod" /* "<uid of the holder's pod>/<holder>" */
#define NEVER INT64_MAX

struct df_lease {
    struct df_kube *k;
    char *name_space, *name, *identity, *address, *pod, *pod_and_identity, *select;
    int64_t duration_us;
    void (*changed)(void *arg, bool held);
    void (*failed)(void *arg, const struct df_err *err);
    void *arg;
    struct df_kube_watch *watch;
    pthread_t thread;
    bool started;
    volatile bool stop;
    int64_t held_until_us; /* monotonic; atomic; 0: not held */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    cJSON *seen;        /* the latest known Lease; NULL: none exists */
    int64_t seen_us;    /* when its current version was first seen, monotonic */
    int64_t epoch;      /* the highest ever seen, also of a deleted Lease; -1: none */
    bool listed;        /* the first list is complete */
    int64_t started_us; /* monotonic */
    char failure[256];  /* the last one since seen_us, or "" */
};

/* ---- local validity -------------------------------------------------------------------------- */

static int64_t held_until(const struct df_lease *l)
{
    return __atomic_load_n(&l->held_until_us, __ATOMIC_ACQUIRE);
}

static void set_held_until(struct df_lease *l, int64_t us)
{
    __atomic_store_n(&l->held_until_us, us, __ATOMIC_RELEASE);
}

/* ---- observing ------------------------------------------------------------------------------- */

static const char *holder_of(const cJSON *lease)
{
    const char *holder = df_json_str(lease, "spec.holderIdentity");
    return holder ? holder : "";
}

/* Stores the observed Lease (owned). A version older than the known one is ignored: a slow watch
 * may deliver it after our own write. Under the lock. */
static void observe_lease(struct df_lease *l, cJSON *lease)
{
    const char *version = df_kube_version(lease), *known = df_kube_version(l->seen);
    if (lease && known && df_kube_version_is_older(version, known)) {
        cJSON_Delete(lease);
        return;
    }
    if (!df_streq(version, known)) {
        l->seen_us = df_mono_us();
        l->failure[0] = '\0';
    }
    cJSON_Delete(l->seen);
    l->seen = lease;
    int64_t epoch = df_json_int(lease, "spec.leaseTransitions", -1);
    l->epoch = epoch > l->epoch ? epoch : l->epoch;
    /* Another holder ends our leadership at once, whatever our clock says. */
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

static int on_apply(void *arg, cJSON **object, struct df_err *err)
{
    struct df_lease *l = arg;
    (void)err;
    (void)pthread_mutex_lock(&l->lock);
    observe_lease(l, DF_TAKE(*object));
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* Somebody deleted the Lease. It is created anew, but only when the previous holder must have
 * noticed. */
static void on_remove(void *arg, cJSON **object)
{
    struct df_lease *l = arg;
    (void)object;
    (void)pthread_mutex_lock(&l->lock);
    observe_lease(l, NULL);
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
    (void)pthread_mutex_lock(&l->lock);
    df_copy(l->failure, sizeof(l->failure), err->message);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->failed)
        l->failed(l->arg, err);
}

/* The process before this one in the same pod holds it, and cannot any more. A replica that does
 * not know the annotation leaves that of the holder before it: hence the comparison with the
 * holder. */
static bool is_orphaned(const struct df_lease *l)
{
    const char *holder = holder_of(l->seen), *pod = df_kube_annotation(l->seen, POD);
    size_t n = strlen(l->pod);
    return n && pod && strncmp(pod, l->pod, n) == 0 && pod[n] == '/' &&
           df_streq(pod + n + 1, holder) && !df_streq(holder, l->identity);
}

/* Returns when the Lease may be taken, by our own clock. Under the lock. */
static int64_t free_at_us(const struct df_lease *l)
{
    if (!l->listed)
        return NEVER;
    int64_t own_s = l->duration_us / 1000000;
    int64_t lasts_s = df_json_int(l->seen, "spec.leaseDurationSeconds", own_s);
    bool is_free = l->seen && (!*holder_of(l->seen) || is_orphaned(l));
    return is_free ? l->seen_us : l->seen_us + (lasts_s > 0 ? lasts_s : own_s) * 1000000;
}

/* ---- writing --------------------------------------------------------------------------------- */

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
    cJSON *notes = df_json_object_at(metadata, "annotations");
    cJSON *spec = df_json_object_at(lease, "spec");
    if (df_json_set_str(metadata, "name", l->name, err) < 0 ||
        df_json_put(notes, err, DF_STR(DF_LEASE_ADDRESS, *holder && l->address ? l->address : ""),
                    DF_STR(POD, *holder && *l->pod ? l->pod_and_identity : "")) < 0 ||
        df_json_set_str(spec, "holderIdentity", holder, err) < 0 ||
        set_number(spec, "leaseDurationSeconds", l->duration_us / 1000000, err) < 0 ||
        set_number(spec, "leaseTransitions", epoch + (taken ? 1 : 0), err) < 0 ||
        (taken && df_json_set_str(spec, "acquireTime", now, err) < 0))
        return -1;
    return df_json_set_str(spec, "renewTime", now, err);
}

static int send_lease(struct df_lease *l, cJSON *lease, cJSON **ret, struct df_err *err)
{
    struct df_kube_at at = {&df_kube_leases, l->name_space, l->name, NULL, NULL};
    if (df_kube_version(lease))
        return df_kube_update(l->k, &at, lease, ret, err);
    if (df_json_put(lease, err, DF_STR("apiVersion", "coordination.k8s.io/v1"),
                    DF_STR("kind", "Lease")) < 0)
        return -1;
    at.name = NULL;
    return df_kube_create(l->k, &at, lease, ret, err);
}

/* Writes this holder into the last observed Lease. CONFLICT if it has changed since. */
static int write_holder(struct df_lease *l, const char *holder, struct df_err *err)
{
    (void)pthread_mutex_lock(&l->lock);
    DF_JSON cJSON *lease = l->seen ? cJSON_Duplicate(l->seen, true) : cJSON_CreateObject();
    int64_t epoch = l->epoch;
    (void)pthread_mutex_unlock(&l->lock);
    cJSON *stored = NULL;
    if (df_check_alloc(lease, err) < 0 || set_spec(l, lease, epoch, holder, err) < 0 ||
        send_lease(l, lease, &stored, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    observe_lease(l, stored);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* ---- holding -------------------------------------------------------------------------------- */

bool df_lease_is_held(const struct df_lease *l)
{
    return df_mono_us() < held_until(l);
}

static int renew_lease(struct df_lease *l, struct df_err *err)
{
    int64_t sent_us = df_mono_us();
    if (write_holder(l, l->identity, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->lock);
    /* The watch may meanwhile have reported another holder. */
    if (df_streq(holder_of(l->seen), l->identity))
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

/* True if another replica or a person has taken the Lease from us. */
static bool is_lost(struct df_lease *l)
{
    (void)pthread_mutex_lock(&l->lock);
    bool lost = l->seen && !df_streq(holder_of(l->seen), l->identity);
    (void)pthread_mutex_unlock(&l->lock);
    return lost;
}

static int reread_lease(struct df_lease *l, struct df_err *err)
{
    const struct df_kube_at at = {&df_kube_leases, l->name_space, l->name, NULL, NULL};
    cJSON *lease = NULL;
    struct df_err why = {0};
    if (df_kube_get(l->k, &at, &lease, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    (void)pthread_mutex_lock(&l->lock);
    observe_lease(l, lease);
    (void)pthread_mutex_unlock(&l->lock);
    return 0;
}

/* Renews the Lease until it is lost or released. */
static void hold_lease(struct df_lease *l)
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
        if (renew_lease(l, &err) == 0)
            continue;
        on_failed(l, &err);
        if (err.cls == DF_ERR_CONFLICT)
            (void)reread_lease(l, &err);
        pause_us = l->duration_us / 30;
    }
}

/* Waits until the Lease may be taken, and tries to take it. */
static bool take_lease(struct df_lease *l)
{
    struct df_err err = {0};
    (void)pthread_mutex_lock(&l->lock);
    while (!df_stopped(&l->stop) && free_at_us(l) > df_mono_us())
        wait_until(l, free_at_us(l), true);
    (void)pthread_mutex_unlock(&l->lock);
    if (df_stopped(&l->stop))
        return false;
    if (renew_lease(l, &err) == 0)
        return true;
    if (err.cls != DF_ERR_CONFLICT) /* on a conflict another replica was faster */
        on_failed(l, &err);
    (void)pthread_mutex_lock(&l->lock);
    wait_until(l, df_mono_us() + l->duration_us / 30, true);
    (void)pthread_mutex_unlock(&l->lock);
    return false;
}

static void *lease_main(void *arg)
{
    struct df_lease *l = arg;
    while (!df_stopped(&l->stop)) {
        if (!take_lease(l))
            continue;
        l->changed(l->arg, true);
        hold_lease(l);
        if (df_stopped(&l->stop))
            break; /* df_lease_stop() releases it */
        set_held_until(l, 0);
        l->changed(l->arg, false);
    }
    return NULL;
}

int df_lease_check(struct df_lease *l, struct df_err *err)
{
    char failure[sizeof(l->failure)];
    (void)pthread_mutex_lock(&l->lock);
    int64_t since_us = l->seen_us > l->started_us ? l->seen_us : l->started_us;
    int64_t own_s = l->duration_us / 1000000;
    int64_t lasts_s = df_json_int(l->seen, "spec.leaseDurationSeconds", own_s);
    (void)snprintf(failure, sizeof(failure), "%s", l->failure);
    (void)pthread_mutex_unlock(&l->lock);
    int64_t idle_us = df_mono_us() - since_us;
    if (idle_us <= 2 * (lasts_s > own_s ? lasts_s : own_s) * 1000000)
        return 0;
    return df_fail_reason(err, DF_ERR_RETRY, "NoLeader",
                          "no replica has renewed the Lease %s for %lld seconds%s%s", l->name,
                          (long long)(idle_us / 1000000), failure[0] ? ": " : "", failure);
}

void df_lease_look(struct df_lease *l, struct df_lease_view *ret)
{
    (void)pthread_mutex_lock(&l->lock);
    const char *address = df_kube_annotation(l->seen, DF_LEASE_ADDRESS);
    (void)snprintf(ret->holder, sizeof(ret->holder), "%s", holder_of(l->seen));
    (void)snprintf(ret->address, sizeof(ret->address), "%s", address ? address : "");
    ret->epoch = l->epoch;
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static int copy_options(struct df_lease *l, const struct df_lease_options *o, struct df_err *err)
{
    l->name_space = strdup(o->name_space);
    l->name = strdup(o->name);
    l->identity = strdup(o->identity);
    l->address = o->address ? strdup(o->address) : NULL;
    l->pod = strdup(o->pod ? o->pod : "");
    l->pod_and_identity = df_strf("%s/%s", o->pod ? o->pod : "", o->identity);
    l->select = df_strf("metadata.name=%s", o->name);
    l->duration_us = o->duration_s * 1000000;
    l->changed = o->changed;
    l->failed = o->failed;
    l->arg = o->arg;
    return l->name_space && l->name && l->identity && l->select && l->pod && l->pod_and_identity &&
                   (l->address || !o->address)
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
        /* Limits how long a silently broken stream stays unnoticed. */
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
    l->started_us = df_mono_us();
    init_sync(l);
    if (copy_options(l, o, err) < 0) {
        df_lease_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

int df_lease_identity(char **ret, struct df_err *err)
{
    char host[256] = "", salt[9];
    const char *pod = getenv("POD_NAME");
    (void)gethostname(host, sizeof(host) - 1);
    if (df_random_hex(salt, 4, err) < 0)
        return -1;
    char *identity = df_strf("%s_%s", df_str_empty(pod) ? host : pod, salt);
    if (!identity)
        return df_fail_oom(err);
    *ret = identity;
    return 0;
}

int df_lease_start(struct df_lease *l, struct df_err *err)
{
    if (start_watch(l, err) < 0)
        return -1;
    int failed = pthread_create(&l->thread, NULL, lease_main, l);
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
        (void)write_holder(l, "", NULL); /* otherwise the others wait until it expires */
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
    free(l->pod);
    free(l->pod_and_identity);
    free(l->select);
    free(l);
}
