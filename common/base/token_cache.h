/*
 * token_cache.h - a credential that some service gives for a while, such as an access token:
 * fetched when somebody needs it, and again before it ends.
 *
 * Thread rule: any thread. One fetches, and whoever needs the token meanwhile waits: one request,
 * not one a thread. If it fails, it has failed for all of them.
 */
#ifndef DF_BASE_TOKEN_CACHE_H
#define DF_BASE_TOKEN_CACHE_H

#include <pthread.h>

#include "common/base/err.h"

struct df_token {
    char *text;         /* owned, a secret; NULL: there is none */
    char *id, *session; /* owned: what belongs to it, as AWS's keys have it; or NULL */
    int64_t until_us;   /* real time: when it ends; INT64_MAX: never */
    int64_t renew_us;   /* real time: another one is fetched from then on */
};
void df_token_wipe(struct df_token *t); /* and frees */
#define DF_TOKEN DF_CLEANUP(df_token_wipe) struct df_token

/* Sets until_us, and renew_us to five minutes before. */
void df_token_ends(struct df_token *t, int64_t until_us);

struct df_token_cache {
    int (*fetch)(void *arg, struct df_token *ret, struct df_err *err);
    void *arg;
    pthread_mutex_t lock; /* of the rest; also held while fetch is at work */
    struct df_token token;
    unsigned failures; /* atomic; read without the lock, too */
    struct df_err failure;
    int64_t asked_ms; /* monotonic: when df_token_cache_renew() last fetched; 0: never */
};

/* arg: for fetch, borrowed. */
void df_token_cache_init(struct df_token_cache *c,
                         int (*fetch)(void *arg, struct df_token *ret, struct df_err *err),
                         void *arg);
void df_token_cache_free(struct df_token_cache *c); /* wipes the token */

/* *ret: a copy, which the caller wipes. refused: the text of a token that a service refused, which
 * is not given out again; or NULL. Fails as fetch did, but RETRY where that has NOT_FOUND or
 * CONFLICT, unless the token that is there has not ended. */
int df_token_cache_get(struct df_token_cache *c, const char *refused, struct df_token *ret,
                       struct df_err *err) DF_MUST_CHECK;

/* A service refused the token with this text: the next get fetches another one. */
void df_token_cache_forget(struct df_token_cache *c, const char *text);

/* A service refused this token: fetches another one now, at most once in pause_ms, and keeps this
 * one if that fails. True if the token is another one now. */
bool df_token_cache_renew(struct df_token_cache *c, const struct df_token *refused,
                          int64_t pause_ms);

#endif
