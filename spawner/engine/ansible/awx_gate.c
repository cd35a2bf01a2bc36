#include "spawner/engine/ansible/awx_gate.h"

#include "common/base/clock.h"

void df_awx_gate_init(struct df_awx_gate *g)
{
    *g = (struct df_awx_gate){0};
    (void)pthread_mutex_init(&g->lock, NULL);
    df_cond_init(&g->left);
}

void df_awx_gate_destroy(struct df_awx_gate *g)
{
    (void)pthread_cond_destroy(&g->left);
    (void)pthread_mutex_destroy(&g->lock);
}

static bool may_enter(const struct df_awx_gate *g)
{
    return g->is_silent ? g->inside == 0 && df_mono_us() >= g->ask_us : g->inside < DF_AWX_AT_ONCE;
}

static int refuse(const struct df_awx_gate *g, struct df_err *err)
{
    int64_t left_us = g->ask_us - df_mono_us();
    if (!g->is_silent)
        return df_fail(err, DF_ERR_RETRY, "%d requests to AWX wait for its answer: it is slow",
                       g->inside);
    (void)df_fail(err, DF_ERR_RETRY, "AWX did not answer the last request, and is asked later");
    if (err)
        err->retry_after_s = left_us > 0 ? (int)((left_us + 999999) / 1000000) : 1;
    return -1;
}

int df_awx_gate_enter(struct df_awx_gate *g, struct df_err *err)
{
    if (!g)
        return 0;
    const struct timespec until = df_mono_after_us(DF_AWX_TURN_US);
    (void)pthread_mutex_lock(&g->lock);
    while (!may_enter(g) && !g->is_silent)
        if (pthread_cond_timedwait(&g->left, &g->lock, &until) != 0)
            break;
    int result = may_enter(g) ? 0 : refuse(g, err);
    g->inside += result == 0;
    (void)pthread_mutex_unlock(&g->lock);
    return result;
}

void df_awx_gate_leave(struct df_awx_gate *g, int64_t began_us, bool was_answered)
{
    int64_t now_us = df_mono_us();
    if (!g)
        return;
    (void)pthread_mutex_lock(&g->lock);
    g->inside--;
    g->is_silent = !was_answered && now_us - began_us >= DF_AWX_SILENT_US;
    g->ask_us = now_us + DF_AWX_SILENCE_US;
    (void)pthread_cond_broadcast(&g->left);
    (void)pthread_mutex_unlock(&g->lock);
}
