#include "common/blob/head_cache.h"

int df_blob_head_cache_init(struct df_blob_head_cache *c, size_t places, struct df_err *err)
{
    *c = (struct df_blob_head_cache){.heads = calloc(places, sizeof(*c->heads)), .places = places};
    if (!c->heads)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&c->lock, NULL);
    return 0;
}

void df_blob_head_cache_free(struct df_blob_head_cache *c)
{
    if (!c->heads)
        return;
    for (size_t i = 0; i < c->places; i++)
        df_blob_head_free(&c->heads[i]);
    free(c->heads);
    (void)pthread_mutex_destroy(&c->lock);
}

/* Each name has one place. */
static struct df_blob_head *place_of(struct df_blob_head_cache *c, const char *name)
{
    return &c->heads[df_hash_str(DF_HASH_BEGIN, name) % c->places];
}

bool df_blob_head_cache_take(struct df_blob_head_cache *c, const char *key,
                             struct df_blob_head *ret)
{
    struct df_blob_head asked = {0};
    static const struct df_blob_sizes no_sizes;
    if (df_blob_head_new(key, &no_sizes, &asked, NULL) < 0)
        return false;
    (void)pthread_mutex_lock(&c->lock);
    struct df_blob_head *kept = place_of(c, asked.name);
    bool is_there = *kept->version && df_streq(kept->name, asked.name);
    if (is_there) {
        *ret = *kept;
        ret->key = key;
        *kept = (struct df_blob_head){0};
    }
    (void)pthread_mutex_unlock(&c->lock);
    df_blob_head_free(&asked);
    return is_there;
}

void df_blob_head_cache_keep(struct df_blob_head_cache *c, struct df_blob_head *h)
{
    (void)pthread_mutex_lock(&c->lock);
    struct df_blob_head *kept = place_of(c, h->name);
    df_blob_head_free(kept);
    *kept = *h;
    kept->key = NULL; /* it was the caller's */
    (void)pthread_mutex_unlock(&c->lock);
    explicit_bzero(h, sizeof(*h));
}
