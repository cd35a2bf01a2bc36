#include "common/terrakube/heartbeat.h"

#include <pthread.h>
#include <signal.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/terrakube/wire.h"

#define WHAT "Redis"
/* A password that is refused does not get right by asking: rarely, should it be given after all. */
enum { PERIOD_MS = 15000, RETRY_MIN_MS = 500, RETRY_MAX_MS = 5000, REFUSED_MS = 3600 * 1000 };

struct df_terrakube_heartbeat {
    const struct df_terrakube_payload *payload; /* borrowed, as are the next two */
    const char *pod;
    const struct df_wait_listener *listener; /* or NULL */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool ending; /* under the lock */
    pthread_t thread;
    struct df_redis *redis; /* the thread's, as is the next */
    bool is_second;         /* another pod that lives runs the step: the keys are its own */
};

/* False: it is time to end. */
static bool pause_ms(struct df_terrakube_heartbeat *h, int64_t ms)
{
    const struct timespec until = df_mono_after_us(ms * 1000);
    (void)pthread_mutex_lock(&h->lock);
    int result = 0;
    while (!h->ending && result == 0)
        result = pthread_cond_timedwait(&h->ended, &h->lock, &until);
    bool goes_on = !h->ending;
    (void)pthread_mutex_unlock(&h->lock);
    return goes_on;
}

static int say_alive(struct df_terrakube_heartbeat *h, struct df_err *err)
{
    return df_terrakube_wire_beat(h->redis, h->payload->job, err) < 0
               ? -1
               : df_terrakube_wire_live(h->redis, h->payload->step, h->pod, &h->is_second, err);
}

/* Keys that stay end by themselves. */
static int say_goodbye(struct df_terrakube_heartbeat *h)
{
    if (h->is_second)
        return 0;
    return df_terrakube_wire_unbeat(h->redis, h->payload->job, NULL) < 0
               ? -1
               : df_terrakube_wire_unlive(h->redis, h->payload->step, NULL);
}

/* Counts the failures in a row. Returns how long to wait now. */
static int64_t beat_once(struct df_terrakube_heartbeat *h, int *failures)
{
    struct df_err why = {0};
    if (say_alive(h, &why) == 0) {
        if (*failures && h->listener)
            h->listener->is_over(h->listener->arg, WHAT);
        *failures = 0;
        return PERIOD_MS;
    }
    bool refused = why.cls == DF_ERR_DENIED;
    if (!(*failures)++ && h->listener)
        h->listener->begins(h->listener->arg, WHAT, refused ? 0 : INT64_MAX, &why);
    return refused ? REFUSED_MS : df_backoff_pause(RETRY_MIN_MS, RETRY_MAX_MS, *failures);
}

static void *beat(void *arg)
{
    struct df_terrakube_heartbeat *h = arg;
    int failures = 0;
    while (pause_ms(h, beat_once(h, &failures)))
        ;
    /* Once more on a new connection if the kept one was cut off. */
    if (say_goodbye(h) < 0 && !failures)
        (void)!say_goodbye(h);
    return NULL;
}

static void release(struct df_terrakube_heartbeat *h)
{
    df_redis_free(h->redis);
    (void)pthread_mutex_destroy(&h->lock);
    (void)pthread_cond_destroy(&h->ended);
    free(h);
}

int df_terrakube_heartbeat_new(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, const char *pod,
                               const struct df_wait_listener *listener,
                               struct df_terrakube_heartbeat **ret, struct df_err *err)
{
    struct df_terrakube_heartbeat *h = calloc(1, sizeof(*h));
    if (!h)
        return df_fail_oom(err);
    h->payload = p;
    h->pod = pod;
    h->listener = listener;
    (void)pthread_mutex_init(&h->lock, NULL);
    df_cond_init(&h->ended);
    int result = df_terrakube_wire_new(s, &h->redis, err);
    /* Signals are for the main thread. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = result == 0 ? pthread_create(&h->thread, NULL, beat, h) : 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        result = df_fail_errno(err, failed, "start the thread of the heartbeat");
    if (result < 0) {
        release(h);
        return -1;
    }
    *ret = h;
    return 0;
}

void df_terrakube_heartbeat_free(struct df_terrakube_heartbeat *h)
{
    if (!h)
        return;
    (void)pthread_mutex_lock(&h->lock);
    h->ending = true;
    (void)pthread_cond_signal(&h->ended);
    (void)pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->thread, NULL);
    release(h);
}
