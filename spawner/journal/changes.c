#include "spawner/journal/changes.h"

void df_changes_init(struct df_changes *c)
{
    (void)pthread_mutex_init(&c->lock, NULL);
}

void df_changes_free(struct df_changes *c)
{
    (void)pthread_mutex_destroy(&c->lock);
}

void df_changes_add(struct df_changes *c, const struct df_store_event *event)
{
    (void)pthread_mutex_lock(&c->lock);
    struct df_changed *at = &c->ring[++c->last % DF_CHANGES];
    (void)snprintf(at->name, sizeof(at->name), "%s", event->name);
    (void)snprintf(at->version, sizeof(at->version), "%s", event->resource_version);
    at->is_new = event->change == DF_CHANGE_ADDED;
    (void)pthread_mutex_unlock(&c->lock);
}

uint64_t df_changes_last(struct df_changes *c, char ret_version[64])
{
    (void)pthread_mutex_lock(&c->lock);
    uint64_t last = c->last;
    (void)snprintf(ret_version, 64, "%s", last ? c->ring[last % DF_CHANGES].version : "0");
    (void)pthread_mutex_unlock(&c->lock);
    return last;
}

int df_changes_get(struct df_changes *c, uint64_t n, struct df_changed *ret)
{
    (void)pthread_mutex_lock(&c->lock);
    int result = n > c->last ? 0 : c->last - n >= DF_CHANGES ? -1 : 1;
    if (result > 0)
        *ret = c->ring[n % DF_CHANGES];
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}
