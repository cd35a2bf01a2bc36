/*
 * oauth.h - access tokens of clouds: asking a token service, and keeping its token until shortly
 * before it expires. Thread rule: any thread.
 */
#ifndef DF_OAUTH_H
#define DF_OAUTH_H

#include <pthread.h>

#include "common/json/json.h"

struct df_oauth_token {
    char *text; /* owned, a secret; NULL: none */
    int64_t expires_us;
};

/* Wipes and frees the text. */
void df_oauth_token_wipe(struct df_oauth_token *t);
#define DF_OAUTH_TOKEN DF_CLEANUP(df_oauth_token_wipe) struct df_oauth_token

struct df_oauth_question {
    const char *what;   /* for messages: "credentials of Google Cloud" */
    const char *url;    /* NULL: out of memory */
    const char *header; /* or NULL */
    const char *type;   /* of the body */
    const char *body;   /* NULL: GET */
    bool direct;        /* through no proxy: it answers whoever asks */
};

/* *ret: the answer of a token service; the caller wipes it (df_json_wipe). Fails as http.h does. */
int df_oauth_ask(const struct df_oauth_question *q, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Takes {"access_token", "expires_in"} of an answer: seconds, as a number or as text. Without the
 * second an hour. SYSTEM if there is no token. */
int df_oauth_take(const cJSON *answer, const char *what, struct df_oauth_token *t,
                  struct df_err *err) DF_MUST_CHECK;

struct df_oauth_cache {
    pthread_mutex_t lock; /* also held while a source is asked: one request, not one a thread */
    struct df_oauth_token token;
    int (*fetch)(void *arg, struct df_oauth_token *ret, struct df_err *err);
    void *arg;
};

void df_oauth_cache_init(struct df_oauth_cache *c,
                         int (*fetch)(void *arg, struct df_oauth_token *ret, struct df_err *err),
                         void *arg);
void df_oauth_cache_free(struct df_oauth_cache *c);

/* *ret: the token, fetched again five minutes before it expires; the caller wipes and frees it. Fails
 * as fetch did, but RETRY where that has NOT_FOUND or CONFLICT, unless the token that is there is
 * still good. */
int df_oauth_cache_get(struct df_oauth_cache *c, char **ret, struct df_err *err) DF_MUST_CHECK;

/* A service refused this token: the next get fetches anew. */
void df_oauth_cache_refused(struct df_oauth_cache *c, const char *token);

#endif
