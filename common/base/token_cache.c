#include "common/base/token_cache.h"

#include "common/base/buf.h"
#include "common/base/clock.h"

enum { EARLY_S = 300 };

void df_token_wipe(struct df_token *t)
{
    df_str_wipe(&t->text);
    df_str_wipe(&t->id);
    df_str_wipe(&t->session);
}

void df_token_ends(struct df_token *t, int64_t until_us)
{
    t->until_us = until_us;
    t->renew_us = until_us == INT64_MAX ? INT64_MAX : until_us - EARLY_S * INT64_C(1000000);
}

void df_token_cache_init(struct df_token_cache *c,
                         int (*fetch)(void *arg, struct df_token *ret, struct df_err *err),
                         void *arg)
{
    *c = (struct df_token_cache){.fetch = fetch, .arg = arg};
    (void)pthread_mutex_init(&c->lock, NULL);
}

void df_token_cache_free(struct df_token_cache *c)
{
    df_token_wipe(&c->token);
    (void)pthread_mutex_destroy(&c->lock);
}

static int copy_token(const struct df_token *from, struct df_token *to, struct df_err *err)
{
    to->until_us = from->until_us;
    to->renew_us = from->renew_us;
    if (df_str_set(&to->text, from->text, err) < 0 || df_str_set(&to->id, from->id, err) < 0)
        return -1;
    return df_str_set(&to->session, from->session, err);
}

static bool are_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_token(const struct df_token_cache *c, const struct df_token *t)
{
    return are_same(c->token.text, t->text) && are_same(c->token.id, t->id) &&
           are_same(c->token.session, t->session);
}

static bool is_past(const struct df_token_cache *c, int64_t us)
{
    return !c->token.text || us <= df_real_us();
}

static int fetch(struct df_token_cache *c, struct df_err *err)
{
    DF_TOKEN t = {0};
    if (c->fetch(c->arg, &t, err) < 0)
        return -1;
    df_token_wipe(&c->token);
    c->token = t;
    t = (struct df_token){0};
    return 0;
}

/* known: the failures when the caller came. One that was added meanwhile is the caller's, too: else
 * each of many would wait for a service that is away, one after the other. */
static int fetch_if_due(struct df_token_cache *c, unsigned known, struct df_err *err)
{
    struct df_err why = {0};
    if (!is_past(c, c->token.renew_us))
        return 0;
    if (__atomic_load_n(&c->failures, __ATOMIC_RELAXED) == known) {
        if (fetch(c, &why) == 0)
            return 0;
        c->failure = why;
        (void)__atomic_add_fetch(&c->failures, 1, __ATOMIC_RELAXED);
    }
    if (!is_past(c, c->token.until_us))
        return 0;
    df_token_wipe(&c->token);
    return df_err_pass_needed(err, &c->failure);
}

/* Under the lock. */
static void forget(struct df_token_cache *c, const char *text)
{
    if (text && df_streq(c->token.text, text))
        df_token_wipe(&c->token);
}

int df_token_cache_get(struct df_token_cache *c, const char *refused, struct df_token *ret,
                       struct df_err *err)
{
    unsigned known = __atomic_load_n(&c->failures, __ATOMIC_RELAXED);
    DF_TOKEN copy = {0};
    (void)pthread_mutex_lock(&c->lock);
    forget(c, refused);
    int result = fetch_if_due(c, known, err);
    if (result == 0)
        result = copy_token(&c->token, &copy, err);
    (void)pthread_mutex_unlock(&c->lock);
    if (result < 0)
        return -1;
    *ret = copy;
    copy = (struct df_token){0};
    return 0;
}

void df_token_cache_forget(struct df_token_cache *c, const char *text)
{
    (void)pthread_mutex_lock(&c->lock);
    forget(c, text);
    (void)pthread_mutex_unlock(&c->lock);
}

bool df_token_cache_renew(struct df_token_cache *c, const struct df_token *refused,
                          int64_t pause_ms)
{
    int64_t now_ms = df_mono_ms();
    (void)pthread_mutex_lock(&c->lock);
    if (is_token(c, refused) && (!c->asked_ms || now_ms - c->asked_ms >= pause_ms)) {
        c->asked_ms = now_ms;
        (void)!fetch(c, NULL);
    }
    bool is_another = c->token.text && !is_token(c, refused);
    (void)pthread_mutex_unlock(&c->lock);
    return is_another;
}
