/*
 * oauth.h - access tokens of clouds: asking a token service. Thread rule: any thread.
 */
#ifndef DF_OAUTH_H
#define DF_OAUTH_H

#include "common/base/token_cache.h"
#include "common/json/json.h"

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
int df_oauth_take(const cJSON *answer, const char *what, struct df_token *t,
                  struct df_err *err) DF_MUST_CHECK;

#endif
