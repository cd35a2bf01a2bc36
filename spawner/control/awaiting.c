#include "spawner/control/awaiting.h"

void df_awaiting_init(struct df_awaiting *a)
{
    (void)pthread_mutex_init(&a->lock, NULL);
}

void df_awaiting_free(struct df_awaiting *a)
{
    (void)pthread_mutex_destroy(&a->lock);
}

static bool is_there(const struct df_awaiting *a, const char *executor, const char *run)
{
    for (size_t i = 0; i < DF_LIMIT_AWAITING; i++) {
        if (df_streq(a->pairs[i].run, run) && df_streq(a->pairs[i].executor, executor))
            return true;
    }
    return false;
}

void df_awaiting_add(struct df_awaiting *a, const char *executor, const char *run)
{
    (void)pthread_mutex_lock(&a->lock);
    if (!is_there(a, executor, run)) {
        (void)snprintf(a->pairs[a->next].executor, sizeof(a->pairs->executor), "%s", executor);
        (void)snprintf(a->pairs[a->next].run, sizeof(a->pairs->run), "%s", run);
        a->next = (a->next + 1) % DF_LIMIT_AWAITING;
    }
    (void)pthread_mutex_unlock(&a->lock);
}

void df_awaiting_wake(struct df_awaiting *a, const char *executor, struct df_queue *q)
{
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < DF_LIMIT_AWAITING; i++) {
        if (!df_streq(a->pairs[i].executor, executor))
            continue;
        df_queue_wake(q, DF_KIND_RUN, a->pairs[i].run);
        a->pairs[i].executor[0] = a->pairs[i].run[0] = '\0';
    }
    (void)pthread_mutex_unlock(&a->lock);
}
