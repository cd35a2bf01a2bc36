#include "common/base/backoff.h"

#include "common/base/clock.h"

int64_t df_backoff(int64_t min, int64_t max, int failures)
{
    int64_t pause = min;
    for (int i = 1; i < failures && pause < max; i++)
        pause *= 2;
    return pause < max ? pause : max;
}

int64_t df_backoff_pause(int64_t min, int64_t max, int failures)
{
    int64_t pause = df_backoff(min, max, failures), half = pause / 2;
    uint32_t chance = 0;
    if (df_random(&chance, sizeof(chance), NULL) < 0)
        return pause;
    return half + (int64_t)((double)half * chance / UINT32_MAX);
}
