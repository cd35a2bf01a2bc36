#include "common/base/retry.h"

#include <poll.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"

enum { FIRST_MS = 500, LAST_MS = 10000, LONGEST_S = 60, STEP_MS = 100 };

struct df_retry df_retry_begin(int64_t ms, const volatile bool *stop)
{
    return (struct df_retry){.until_ms = df_mono_ms() + ms, .stop = stop};
}

void df_retry_succeeded(const struct df_retry *p)
{
    if (p->listener && p->failures)
        p->listener->is_over(p->listener->arg, p->what);
}

bool df_retry_again(struct df_retry *p, const struct df_err *why)
{
    if (why->cls != DF_ERR_RETRY)
        return false;
    int64_t asked = why->retry_after_s < LONGEST_S ? why->retry_after_s : LONGEST_S;
    int64_t pause = df_backoff_pause(FIRST_MS, LAST_MS, ++p->failures);
    int64_t until = df_mono_ms() + (asked * 1000 > pause ? asked * 1000 : pause);
    if (until > p->until_ms)
        return false;
    if (p->listener && p->failures == 1)
        p->listener->begins(p->listener->arg, p->what, p->until_ms - df_mono_ms(), why);
    while (!df_stopped(p->stop) && df_mono_ms() < until)
        (void)poll(NULL, 0, STEP_MS);
    return !df_stopped(p->stop);
}
