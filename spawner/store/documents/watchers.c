#include "spawner/store/documents/watchers.h"

void df_watchers_init(struct df_watchers *w)
{
    *w = (struct df_watchers){0};
    (void)pthread_mutex_init(&w->drawing, NULL);
    (void)pthread_mutex_init(&w->notifying, NULL);
    (void)pthread_cond_init(&w->notified, NULL);
}

void df_watchers_free(struct df_watchers *w)
{
    (void)pthread_mutex_destroy(&w->drawing);
    (void)pthread_mutex_destroy(&w->notifying);
    (void)pthread_cond_destroy(&w->notified);
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
    (void)pthread_mutex_lock(&w->notifying);
    int result = add_locked(w, fn, arg, err);
    (void)pthread_mutex_unlock(&w->notifying);
    return result;
}

void df_watchers_remove(struct df_watchers *w, df_store_watcher fn, void *arg)
{
    (void)pthread_mutex_lock(&w->notifying);
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].fn == fn && w->list[i].arg == arg) {
            w->list[i] = w->list[--w->count];
            break;
        }
    }
    (void)pthread_mutex_unlock(&w->notifying);
}

uint64_t df_watchers_draw(struct df_watchers *w)
{
    (void)pthread_mutex_lock(&w->drawing);
    uint64_t sequence = w->drawn++;
    (void)pthread_mutex_unlock(&w->drawing);
    return sequence;
}

void df_watchers_notify(struct df_watchers *w, uint64_t sequence,
                        const struct df_store_event *event)
{
    (void)pthread_mutex_lock(&w->notifying);
    while (w->next != sequence)
        (void)pthread_cond_wait(&w->notified, &w->notifying);
    for (size_t i = 0; i < w->count; i++)
        w->list[i].fn(w->list[i].arg, event);
    w->next++;
    (void)pthread_cond_broadcast(&w->notified);
    (void)pthread_mutex_unlock(&w->notifying);
}
