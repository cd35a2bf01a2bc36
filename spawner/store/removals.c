#include "spawner/store/removals.h"

int df_removal_begin(struct df_removals *r, struct df_err *err)
{
    (void)pthread_mutex_lock(&r->lock);
    bool held = r->held > 0;
    r->active += !held;
    (void)pthread_mutex_unlock(&r->lock);
    return held ? df_fail_reason(err, DF_ERR_RETRY, "BackupRunning",
                                 "a backup is being made, and until its end nothing that it may "
                                 "need is removed: try again later")
                : 0;
}

void df_removal_end(struct df_removals *r)
{
    (void)pthread_mutex_lock(&r->lock);
    if (--r->active == 0)
        (void)pthread_cond_broadcast(&r->none);
    (void)pthread_mutex_unlock(&r->lock);
}

void df_removals_hold(struct df_removals *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->held++;
    while (r->active)
        (void)pthread_cond_wait(&r->none, &r->lock);
    (void)pthread_mutex_unlock(&r->lock);
}

void df_removals_release(struct df_removals *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->held--;
    (void)pthread_mutex_unlock(&r->lock);
}
