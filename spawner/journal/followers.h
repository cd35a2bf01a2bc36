/*
 * followers.h - who waits for news of a step is woken at once.
 *
 * Steps share a small, fixed number of places: a wake for another step of the same place only makes
 * a follower look once for nothing, and no place is ever made or freed. Thread rule: any thread.
 */
#ifndef DF_NEWS_FOLLOWERS_H
#define DF_NEWS_FOLLOWERS_H

#include <pthread.h>

#include "common/base/err.h"

#define DF_FOLLOWER_PLACES 32

struct df_followers {
    struct df_follower_place {
        pthread_mutex_t lock;
        pthread_cond_t news;
        uint64_t mark;             /* grows with every piece of news */
        pthread_mutex_t appending; /* one append at a time to the streams of this place */
    } places[DF_FOLLOWER_PLACES];
};

void df_followers_init(struct df_followers *f);
void df_followers_free(struct df_followers *f);

struct df_follower_place *df_followers_place(struct df_followers *f, const char *uid);

uint64_t df_followers_mark(struct df_follower_place *p);
/* Sleeps until there is news since the mark, or timeout_ms passed. */
void df_followers_wait(struct df_follower_place *p, uint64_t mark, int64_t timeout_ms);
void df_followers_wake(struct df_follower_place *p);
void df_followers_wake_all(struct df_followers *f);

#endif
