/*
 * wait_listener.h - callbacks for calls that are repeated: when the wait begins and ends. Thread
 * rule: its functions are called from the thread that waits.
 */
#ifndef DF_BASE_WAIT_LISTENER_H
#define DF_BASE_WAIT_LISTENER_H

#include "common/base/err.h"

/* Is called once when a wait begins, and once when it is over because an attempt succeeded; not for
 * each attempt. A wait that ends otherwise is reported by the failure of the call alone. */
struct df_wait_listener {
    /* what: who is waited for; ms: for how long at most; why: the first failure. */
    void (*begins)(void *arg, const char *what, int64_t ms, const struct df_err *why);
    void (*is_over)(void *arg, const char *what);
    void *arg;
};

#endif
