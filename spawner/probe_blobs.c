#include "spawner/probe_blobs.h"

#include <pthread.h>

#include "common/base/clock.h"

/* Three requests a minute cost nothing, and an alert wants to know within one: a store that takes every
 * request and answers none is found out after most of a minute. What failed is watched more closely,
 * because somebody is waiting. */
#define PERIOD_US INT64_C(20000000)
#define PERIOD_FAILING_US INT64_C(5000000)

struct df_blob_prober {
    struct df_blob *blobs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopped;
};

static void *probe(void *arg)
{
    struct df_blob_prober *p = arg;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stopped) {
        bool fails = df_blob_check(p->blobs, NULL) < 0;
        struct timespec until = df_mono_after_us(fails ? PERIOD_FAILING_US : PERIOD_US);
        while (!p->stopped && pthread_cond_timedwait(&p->stop, &p->lock, &until) == 0)
            continue;
        if (p->stopped)
            break;
        (void)pthread_mutex_unlock(&p->lock);
        df_blob_probe(p->blobs);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void free_prober(struct df_blob_prober *p)
{
    (void)pthread_cond_destroy(&p->stop);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int df_blob_prober_start(struct df_blob *blobs, struct df_blob_prober **ret, struct df_err *err)
{
    struct df_blob_prober *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    p->blobs = blobs;
    (void)pthread_mutex_init(&p->lock, NULL);
    df_cond_init(&p->stop);
    int failed = pthread_create(&p->thread, NULL, probe, p);
    if (failed) {
        free_prober(p);
        return df_fail_errno(err, failed, "start the thread that asks the store of blobs");
    }
    *ret = p;
    return 0;
}

void df_blob_prober_stop(struct df_blob_prober *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stopped = true;
    (void)pthread_cond_signal(&p->stop);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    free_prober(p);
}
