/*
 * backoff.h - how long to wait before the next attempt. Thread rule: any thread.
 */
#ifndef DF_BASE_BACKOFF_H
#define DF_BASE_BACKOFF_H

#include <stdint.h>

/* The delay after so many failures in a row (>= 1): min, doubled with each further failure, at most
 * max. Any unit of time. */
int64_t df_backoff(int64_t min, int64_t max, int failures);

/* Half of that delay plus a random part of the other half, so that many clients that failed
 * together do not retry together. */
int64_t df_backoff_pause(int64_t min, int64_t max, int failures);

#endif
