#include "spawner/store/watch.h"

void df_watchers_init(struct df_watchers *w)
{
    *w = (struct df_watchers){0};
    (void)pthread_mutex_init(&w->drawing, NULL);
    (void)pthread_mutex_init(&w->telling, NULL);
    (void)pthread_cond_init(&w->told, NULL);
}

void df_watchers_free(struct df_watchers *w)
{
    (void)pthread_mutex_destroy(&w->drawing);
    (void)pthread_mutex_destroy(&w->telling);
    (void)pthread_cond_destroy(&w->told);
    free(w->list);
    *w = (struct df_watchers){0};
}

static int add_locked(struct df_watchers *w, df_store_watcher fn, void *arg, struct df_err *err)
{
    if (w->count == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 8;
        struct df_watcher *list = realloc(w->list, cap * sizeof(*list));
        if (!list)
            return df_fail_oom(err);
        w->list = list;
        w->cap = cap;
    }
    w->list[w->count++] = (struct df_watcher){fn, arg};
    return 0;
}

int df_watchers_add(struct df_watchers *w, df_store_watcher fn, void *arg, struct df_err *err)
{
    (void)pthread_mutex_lock(&w->telling);
    int result = add_locked(w, fn, arg, err);
    (void)pthread_mutex_unlock(&w->telling);
    return result;
}

void df_watchers_remove(struct df_watchers *w, df_store_watcher fn, void *arg)
{
    (void)pthread_mutex_lock(&w->telling);
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].fn == fn && w->list[i].arg == arg) {
            w->list[i] = w->list[--w->count];
            break;
        }
    }
    (void)pthread_mutex_unlock(&w->telling);
}

uint64_t df_watchers_ticket(struct df_watchers *w)
{
    (void)pthread_mutex_lock(&w->drawing);
    uint64_t ticket = w->drawn++;
    (void)pthread_mutex_unlock(&w->drawing);
    return ticket;
}

void df_watchers_tell(struct df_watchers *w, uint64_t ticket, const struct df_store_event *event)
{
    (void)pthread_mutex_lock(&w->telling);
    while (w->redeemed != ticket)
        (void)pthread_cond_wait(&w->told, &w->telling);
    for (size_t i = 0; i < w->count; i++)
        w->list[i].fn(w->list[i].arg, event);
    w->redeemed++;
    (void)pthread_cond_broadcast(&w->told);
    (void)pthread_mutex_unlock(&w->telling);
}
