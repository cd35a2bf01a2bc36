#include "runner/terrakube/waits.h"

#include "common/base/log.h"

/* ---- API and storage ---- */

static void call_begins(void *arg, const char *what, int64_t ms, const struct df_err *why)
{
    const struct df_terrakube_waits *w = arg;
    const long long seconds = (ms + 999) / 1000;
    if (w->output)
        (void)df_output_note(w->output,
                             "dayfly: waiting for %s, which is asked again for %lld s at most: %s",
                             what, seconds, why->message);
    else
        df_warn("waiting for %s, which is asked again for %lld s at most: %s", what, seconds,
                why->message);
}

static void call_is_over(void *arg, const char *what)
{
    const struct df_terrakube_waits *w = arg;
    if (w->output)
        (void)df_output_note(w->output, "dayfly: %s answers again", what);
    else
        df_warn("%s answers again", what);
}

/* ---- Redis ---- */

static void redis_begins(void *arg, const char *what, int64_t ms, const struct df_err *why)
{
    struct df_terrakube_waits *w = arg;
    __atomic_store_n(&w->redis_was_away, true, __ATOMIC_RELAXED);
    if (ms == 0)
        df_error("%s refuses this executor: no line is shown live, and Terrakube's API may give up "
                 "a job without heartbeat; check the settings TerrakubeRedisPassword and "
                 "TerrakubeRedisSSL: %s",
                 what, why->message);
    else
        df_warn(
            "waiting for %s until the step ends; lines wait as well, and the saved output has all: "
            "%s",
            what, why->message);
}

static void redis_is_over(void *arg, const char *what)
{
    (void)arg;
    df_warn("%s answers again", what);
}

bool df_terrakube_waits_had_redis_away(const struct df_terrakube_waits *w)
{
    return __atomic_load_n(&w->redis_was_away, __ATOMIC_RELAXED);
}

void df_terrakube_waits_init(struct df_terrakube_waits *w)
{
    w->calls = (struct df_wait_listener){call_begins, call_is_over, w};
    w->threads = (struct df_wait_listener){redis_begins, redis_is_over, w};
}
