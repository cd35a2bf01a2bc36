/*
 * heard.h - a df_wait_listener that counts what it hears, from any thread. Include behind cmocka.h.
 */
#ifndef DF_TEST_HEARD_H
#define DF_TEST_HEARD_H

#include "common/base/wait_listener.h"

struct heard {
    const char *what; /* who is waited for: set by the test */
    int begun, over;  /* atomic */
    int64_t ms;       /* the last wait */
    struct df_err why;
};

static inline void hear_begin(void *arg, const char *what, int64_t ms, const struct df_err *why)
{
    struct heard *h = arg;
    assert_string_equal(what, h->what);
    h->ms = ms;
    h->why = *why;
    (void)__atomic_add_fetch(&h->begun, 1, __ATOMIC_RELEASE);
}

static inline void hear_end(void *arg, const char *what)
{
    struct heard *h = arg;
    assert_string_equal(what, h->what);
    (void)__atomic_add_fetch(&h->over, 1, __ATOMIC_RELEASE);
}

static inline struct df_wait_listener listen_to(struct heard *h)
{
    return (struct df_wait_listener){hear_begin, hear_end, h};
}

#endif
