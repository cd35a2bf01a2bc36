#include "common/http/pool.h"

#include <pthread.h>

#include "common/base/limits.h"

struct df_http_pool {
    struct df_http_options options;
    pthread_mutex_t lock;
    struct df_http
        *idle[DF_LIMIT_HTTP_IDLE]; /* the one used last is on top: its connection lives */
    size_t len;
};

int df_http_pool_new(const struct df_http_options *options, struct df_http_pool **ret,
                     struct df_err *err)
{
    struct df_http_pool *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    p->options = *options;
    (void)pthread_mutex_init(&p->lock, NULL);
    *ret = p;
    return 0;
}

void df_http_pool_free(struct df_http_pool *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->len; i++)
        df_http_free(p->idle[i]);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int df_http_pool_take(struct df_http_pool *p, struct df_http **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&p->lock);
    struct df_http *h = p->len ? p->idle[--p->len] : NULL;
    (void)pthread_mutex_unlock(&p->lock);
    if (!h)
        return df_http_new(&p->options, ret, err);
    *ret = h;
    return 0;
}

void df_http_pool_give(struct df_http_pool *p, struct df_http *h)
{
    (void)pthread_mutex_lock(&p->lock);
    bool keep = p->len < DF_LIMIT_HTTP_IDLE;
    if (keep)
        p->idle[p->len++] = h;
    (void)pthread_mutex_unlock(&p->lock);
    if (!keep)
        df_http_free(h);
}
