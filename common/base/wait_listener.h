/*
 * wait_listener.h - who is told that a call is repeated, and what for. Thread rule: its functions are
 * called from the thread that waits.
 */
#ifndef DF_BASE_WAIT_LISTENER_H
#define DF_BASE_WAIT_LISTENER_H

#include "common/base/err.h"

/* Who hears of a wait, not of each attempt: that it begins, and that it is over because an attempt
 * succeeded. Of one that ends otherwise the failure of the call tells. */
struct df_wait_listener {
    /* what: who is waited for; ms: for how long at most; why: the first failure. */
    void (*begins)(void *arg, const char *what, int64_t ms, const struct df_err *why);
    void (*is_over)(void *arg, const char *what);
    void *arg;
};

#endif
