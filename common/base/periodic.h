/*
 * periodic.h - a thread that does something again and again, with a pause before each time. Thread
 * rule: start and stop in one thread.
 */
#ifndef DF_PERIODIC_H
#define DF_PERIODIC_H

#include "common/base/err.h"

struct df_periodic; /* opaque */

/* Does it once, in the thread. Returns the pause before the next time, in microseconds. */
typedef int64_t (*df_periodic_work)(void *arg);

/* pause_us: before the first time. arg: borrowed until the stop. */
int df_periodic_start(df_periodic_work work, void *arg, int64_t pause_us, struct df_periodic **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Waits for the work that is under way. NULL is fine. */
void df_periodic_stop(struct df_periodic *p);

#endif
