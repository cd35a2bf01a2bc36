/*
 * jwks.c - verifies tokens with the cluster's keys, which it fetches and caches. An unknown
 * key leads to one refresh and a second verification.
 */
#include "common/crypto/jwks.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"

struct df_jwks {
    struct df_jwks_options options;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t fetched;
    bool fetching; /* one thread fetches, without the lock */
    char *issuer;
    struct df_jwk_set *keys; /* NULL: none yet */
    int64_t keys_ms;         /* monotonic time of the last successful fetch */
    bool tried;
    int64_t tried_ms; /* monotonic time of the last fetch, successful or not */
};

/* ---- lifecycle ---- */

int df_jwks_new(const struct df_jwks_options *o, struct df_jwks **ret, struct df_err *err)
{
    struct df_jwks *j = calloc(1, sizeof(*j));
    char *issuer = o->issuer ? strdup(o->issuer) : NULL;
    if (!j || (o->issuer && !issuer)) {
        free(j);
        free(issuer);
        return df_fail_oom(err);
    }
    j->options = *o;
    j->options.issuer = NULL; /* only the copy is used */
    j->issuer = issuer;
    (void)pthread_mutex_init(&j->lock, NULL);
    (void)pthread_cond_init(&j->fetched, NULL);
    *ret = j;
    return 0;
}

void df_jwks_free(struct df_jwks *j)
{
    if (!j)
        return;
    (void)pthread_mutex_destroy(&j->lock);
    (void)pthread_cond_destroy(&j->fetched);
    df_jwk_set_free(j->keys);
    free(j->issuer);
    free(j);
}

/* ---- fetching: without the lock ---- */

static int fetch_keys(struct df_jwks *j, struct df_jwk_set **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_JWKS);
    if (j->options.fetch(j->options.arg, DF_JWKS_PATH, &text, err) < 0)
        return -1;
    return df_jwk_set_parse(df_buf_str(&text), text.len, ret, err);
}

static int fetch_issuer(struct df_jwks *j, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_JWKS);
    DF_JSON cJSON *doc = NULL;
    if (j->options.fetch(j->options.arg, DF_JWKS_DISCOVERY, &text, err) < 0)
        return -1;
    if (df_json_parse(df_buf_str(&text), text.len, &doc, err) < 0)
        return df_err_wrap(err, "discovery document");
    const char *issuer = df_json_str(doc, "issuer");
    if (df_str_empty(issuer))
        return df_fail(err, DF_ERR_USER, "the discovery document names no issuer");
    return df_check_alloc(*ret = strdup(issuer), err);
}

/* ---- verifying: with the lock ---- */

static bool is_early(const struct df_jwks *j)
{
    return j->tried && df_mono_ms() - j->tried_ms < DF_JWKS_PAUSE_S * (int64_t)1000;
}

static bool is_old(const struct df_jwks *j)
{
    return j->keys && df_mono_ms() - j->keys_ms >= DF_JWKS_AGE_S * (int64_t)1000;
}

static void take_over(struct df_jwks *j, struct df_jwk_set *keys, char *issuer)
{
    if (issuer) {
        free(j->issuer);
        j->issuer = issuer;
    }
    if (!keys)
        return;
    df_jwk_set_free(j->keys);
    j->keys = keys;
    j->keys_ms = df_mono_ms();
}

/* If another thread is fetching already, wait for its result. */
static int refresh_keys(struct df_jwks *j, struct df_err *err)
{
    struct df_jwk_set *keys = NULL;
    char *issuer = NULL;
    if (j->fetching) {
        while (j->fetching)
            (void)pthread_cond_wait(&j->fetched, &j->lock);
        return 0;
    }
    j->fetching = j->tried = true;
    j->tried_ms = df_mono_ms();
    bool knows_issuer = j->issuer != NULL;
    (void)pthread_mutex_unlock(&j->lock);
    int result = knows_issuer ? 0 : fetch_issuer(j, &issuer, err);
    if (result == 0)
        result = fetch_keys(j, &keys, err);
    (void)pthread_mutex_lock(&j->lock);
    take_over(j, keys, issuer);
    j->fetching = false;
    (void)pthread_cond_broadcast(&j->fetched);
    return result;
}

static int fail_unavailable(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_RETRY, "TokenKeysUnavailable",
                          "the keys that tokens are signed with cannot be read: %s", why);
}

static int need_keys(struct df_jwks *j, struct df_err *err)
{
    struct df_err why = {0};
    bool wanted = !j->keys || (is_old(j) && !j->fetching);
    if (wanted && (j->fetching || !is_early(j)) && refresh_keys(j, &why) < 0 && !j->keys)
        return fail_unavailable(err, why.message);
    return j->keys ? 0 : fail_unavailable(err, "the last try failed a moment ago");
}

static int verify_with_keys(struct df_jwks *j, const char *token, const char *audience, cJSON **ret,
                            struct df_err *err)
{
    int64_t ahead_us = j->options.ahead_us ? j->options.ahead_us(j->options.arg) : 0;
    const struct df_jwt_expect e = {j->issuer, audience, df_real_us() + ahead_us};
    return df_jwt_verify(token, j->keys, &e, ret, err);
}

static int verify_twice(struct df_jwks *j, const char *token, const char *audience, cJSON **ret,
                        struct df_err *err)
{
    struct df_err why = {0}, news = {0};
    if (need_keys(j, err) < 0)
        return -1;
    if (verify_with_keys(j, token, audience, ret, &why) == 0)
        return 0;
    if (df_streq(why.reason, "TokenKeyUnknown")) {
        if (!j->fetching && is_early(j))
            return fail_unavailable(err,
                                    "its key is unknown, and the keys were fetched a moment ago");
        if (refresh_keys(j, &news) < 0)
            return fail_unavailable(err, news.message);
        return verify_with_keys(j, token, audience, ret, err);
    }
    return df_err_pass(err, &why);
}

int df_jwks_verify(struct df_jwks *j, const char *token, const char *audience, cJSON **ret,
                   struct df_err *err)
{
    (void)pthread_mutex_lock(&j->lock);
    int result = verify_twice(j, token, audience, ret, err);
    (void)pthread_mutex_unlock(&j->lock);
    return result;
}
