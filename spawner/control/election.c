/*
 * election.c - competes for the Lease (common/kube/lease.h) and reacts when this replica gets or
 * loses it. A new leader lists all documents before its reconcilers start, and begins to watch the
 * Jobs; a leader that loses the Lease ends the process. Read df_election_start(), enter(), then
 * on_changed() and start().
 */
#include "spawner/control/election.h"

#include <poll.h>
#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { PAUSE_MS = 100 };

struct df_election {
    struct df_spawner *s;
    struct df_kube *kube; /* the election's own, without a fence */
    struct df_lease *lease;
    struct df_leader_check check;
    char *identity, *address;
    struct df_log_gate failures;
    pthread_mutex_t lock; /* guards the rest */
    volatile bool closed;
    pthread_t start; /* the thread that starts the control loop; created once */
    bool has_start;
};

static int catch_up(struct df_election *e, struct df_err *err)
{
    struct df_spawner *s = e->s;
    return s->config->in_cluster ? df_store_kube_catch_up(s->store, &e->closed, err) : 0;
}

/* Asks again while the store is away. False: df_election_close() was called. */
static bool may_lead(const struct df_election *e)
{
    struct df_err err = {0};
    while (e->check.may_lead(e->check.arg, &err) < 0) {
        if (err.cls != DF_ERR_RETRY) {
            df_error("%s does not lead, this process ends: %s", e->identity, err.message);
            _exit(EXIT_FAILURE);
        }
        if (__atomic_load_n(&e->closed, __ATOMIC_RELAXED))
            return false;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

static void *start(void *arg)
{
    struct df_election *e = arg;
    struct df_err err = {0};
    if (__atomic_load_n(&e->closed, __ATOMIC_RELAXED))
        return NULL;
    if (df_engine_registry_watch(&e->s->engines, &err) < 0) {
        df_error("the watches of a leader do not start: %s", err.message);
        _exit(EXIT_FAILURE);
    }
    if (!may_lead(e) || catch_up(e, &err) < 0) /* df_election_close() was called */
        return NULL;
    __atomic_store_n(&e->s->leads, true, __ATOMIC_RELEASE);
    df_info("%s leads", e->identity);
    if (df_control_start(e->s->control, &err) < 0) {
        df_error("the control loop does not start: %s", err.message);
        _exit(EXIT_FAILURE);
    }
    return NULL;
}

/* Starts the control loop in a thread of its own: listing ten thousand documents takes longer than
 * the time between two renewals of a short Lease. */
static void begin_to_lead(struct df_election *e)
{
    (void)pthread_mutex_lock(&e->lock);
    if (!e->closed) {
        e->has_start = pthread_create(&e->start, NULL, start, e) == 0;
        if (!e->has_start)
            _exit(EXIT_FAILURE);
    }
    (void)pthread_mutex_unlock(&e->lock);
}

static void on_changed(void *arg, bool held)
{
    struct df_election *e = arg;
    if (held) {
        begin_to_lead(e);
        return;
    }
    df_error("%s leads no more: this process ends, so that the next leader works alone",
             e->identity);
    _exit(EXIT_FAILURE);
}

static void on_failed(void *arg, const struct df_err *err)
{
    struct df_election *e = arg;
    unsigned skipped = 0;
    if (df_log_gate_passes(&e->failures, df_mono_us(), &skipped))
        df_warn("the lease: %s (%u such failures before it are not logged)", err->message, skipped);
}

/* The fence of s->kube. e->lease is set before the fence is installed, and the check only reads the
 * clock, so no write waits for it. */
static bool may_write(void *arg)
{
    const struct df_election *e = arg;
    return df_lease_is_held(e->lease);
}

static int find_address(struct df_election *e, struct df_err *err)
{
    const char *configured = e->s->config->election_address, *ip = getenv("POD_IP");
    const char *url = e->s->server_url, *port = strrchr(e->s->config->listen, ':');
    bool tls = df_starts_with(url, "https://"), v6 = ip && strchr(ip, ':');
    if (configured || df_str_empty(ip) || !port || df_streq(port, ":0"))
        e->address = strdup(configured ? configured : url);
    else
        e->address = df_strf("%s://%s%s%s%s", tls ? "https" : "http", v6 ? "[" : "", ip,
                             v6 ? "]" : "", port);
    return e->address ? 0 : df_fail_oom(err);
}

static int enter(struct df_election *e, const char *name_space, struct df_err *err)
{
    const struct df_config *c = e->s->config;
    const struct df_lease_options o = {.name_space = name_space,
                                       .name = c->election_lease,
                                       .identity = e->identity,
                                       .pod = getenv("POD_UID"),
                                       .address = e->address,
                                       .duration_s = c->election_lease_s,
                                       .changed = on_changed,
                                       .failed = on_failed,
                                       .arg = e};
    if (df_lease_new(e->kube, &o, &e->lease, err) < 0)
        return -1;
    df_kube_fence(e->s->kube, may_write, e);
    __atomic_store_n(&e->s->lease, e->lease, __ATOMIC_RELEASE);
    if (df_lease_start(e->lease, err) == 0)
        return 0;
    __atomic_store_n(&e->s->lease, NULL, __ATOMIC_RELEASE);
    return -1;
}

int df_election_start(struct df_spawner *s, struct df_kube_config *config, const char *name_space,
                      const struct df_leader_check *check, struct df_election **ret,
                      struct df_err *err)
{
    struct df_election *e = calloc(1, sizeof(*e));
    if (!e) {
        df_kube_config_free(config);
        return df_fail_oom(err);
    }
    e->s = s;
    e->check = *check;
    (void)pthread_mutex_init(&e->lock, NULL);
    if (df_kube_new(config, &e->kube, err) < 0 || df_lease_identity(&e->identity, err) < 0 ||
        find_address(e, err) < 0 || enter(e, name_space, err) < 0) {
        df_election_free(e);
        return -1;
    }
    *ret = e;
    return 0;
}

void df_election_close(struct df_election *e)
{
    (void)pthread_mutex_lock(&e->lock);
    __atomic_store_n(&e->closed, true, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&e->lock);
    if (e->has_start)
        (void)pthread_join(e->start, NULL);
}

void df_election_stop(struct df_election *e)
{
    df_lease_stop(e->lease);
}

void df_election_free(struct df_election *e)
{
    if (!e)
        return;
    df_lease_free(e->lease);
    df_kube_free(e->kube);
    (void)pthread_mutex_destroy(&e->lock);
    free(e->identity);
    free(e->address);
    free(e);
}
