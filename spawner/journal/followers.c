#include "spawner/journal/followers.h"

#include <errno.h>

#include "common/base/clock.h"

void df_followers_init(struct df_followers *f)
{
    for (size_t i = 0; i < DF_FOLLOWER_PLACES; i++) {
        struct df_follower_place *p = &f->places[i];
        p->mark = 0;
        (void)pthread_mutex_init(&p->lock, NULL);
        (void)pthread_mutex_init(&p->appending, NULL);
        df_cond_init(&p->news);
    }
}

void df_followers_free(struct df_followers *f)
{
    for (size_t i = 0; i < DF_FOLLOWER_PLACES; i++) {
        (void)pthread_mutex_destroy(&f->places[i].lock);
        (void)pthread_mutex_destroy(&f->places[i].appending);
        (void)pthread_cond_destroy(&f->places[i].news);
    }
}

struct df_follower_place *df_followers_place(struct df_followers *f, const char *uid)
{
    return &f->places[df_hash_str(DF_HASH_BEGIN, uid) % DF_FOLLOWER_PLACES];
}

uint64_t df_followers_mark(struct df_follower_place *p)
{
    (void)pthread_mutex_lock(&p->lock);
    uint64_t mark = p->mark;
    (void)pthread_mutex_unlock(&p->lock);
    return mark;
}

void df_followers_wait(struct df_follower_place *p, uint64_t mark, int64_t timeout_ms)
{
    const struct timespec until = df_mono_after_us(timeout_ms * 1000);
    (void)pthread_mutex_lock(&p->lock);
    int result = 0;
    while (p->mark == mark && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&p->news, &p->lock, &until);
    (void)pthread_mutex_unlock(&p->lock);
}

void df_followers_wake(struct df_follower_place *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->mark++;
    (void)pthread_cond_broadcast(&p->news);
    (void)pthread_mutex_unlock(&p->lock);
}

void df_followers_wake_all(struct df_followers *f)
{
    for (size_t i = 0; i < DF_FOLLOWER_PLACES; i++)
        df_followers_wake(&f->places[i]);
}
