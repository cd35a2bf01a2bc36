#include "common/base/periodic.h"

#include <pthread.h>

#include "common/base/clock.h"

struct df_periodic {
    df_periodic_work work;
    void *arg;
    int64_t pause_us;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopped;
};

/* False: it was stopped. Under the lock. */
static bool pause_for(struct df_periodic *p, int64_t us)
{
    struct timespec until = df_mono_after_us(us);
    while (!p->stopped && pthread_cond_timedwait(&p->stop, &p->lock, &until) == 0)
        continue;
    return !p->stopped;
}

static void *run(void *arg)
{
    struct df_periodic *p = arg;
    int64_t pause_us = p->pause_us;
    (void)pthread_mutex_lock(&p->lock);
    while (pause_for(p, pause_us)) {
        (void)pthread_mutex_unlock(&p->lock);
        pause_us = p->work(p->arg);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void free_periodic(struct df_periodic *p)
{
    (void)pthread_cond_destroy(&p->stop);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int df_periodic_start(df_periodic_work work, void *arg, int64_t pause_us, struct df_periodic **ret,
                      struct df_err *err)
{
    struct df_periodic *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    p->work = work;
    p->arg = arg;
    p->pause_us = pause_us;
    (void)pthread_mutex_init(&p->lock, NULL);
    df_cond_init(&p->stop);
    int failed = pthread_create(&p->thread, NULL, run, p);
    if (failed) {
        free_periodic(p);
        return df_fail_errno(err, failed, "start a thread");
    }
    *ret = p;
    return 0;
}

void df_periodic_stop(struct df_periodic *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stopped = true;
    (void)pthread_cond_signal(&p->stop);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    free_periodic(p);
}
