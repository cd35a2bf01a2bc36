/*
 * retry.h - a call that is repeated for some time: when it may be, after which pause.
 * Thread rule: one struct, one thread.
 */
#ifndef DF_BASE_RETRY_H
#define DF_BASE_RETRY_H

#include "common/base/wait_listener.h"

struct df_retry {
    int64_t until_ms;          /* monotonic; the first attempt is made in any case */
    const volatile bool *stop; /* ends a pause within 100 ms; or NULL */
    int failures;
    const struct df_wait_listener *listener; /* or NULL */
    const char *what;                        /* for it */
};

/* From now on for so long. */
struct df_retry df_retry_begin(int64_t ms, const volatile bool *stop);

/* After an attempt that succeeded, for the listener. */
void df_retry_succeeded(const struct df_retry *p);

/* After an attempt that failed with why: true, after a pause, if it shall be repeated. False: why
 * is not RETRY, the time is over, or stop is set. The pause grows from half a second to ten, and is
 * as long as a busy peer asked for, up to a minute. */
bool df_retry_again(struct df_retry *p, const struct df_err *why);

#endif
