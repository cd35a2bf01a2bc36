/*
 * backoff.h - how long to rest before the next try. Thread rule: any thread.
 */
#ifndef DF_BASE_BACKOFF_H
#define DF_BASE_BACKOFF_H

#include <stdint.h>

/* After so many failures in a row (>= 1): min, doubled with each further one, at most max. Any unit
 * of time. */
int64_t df_backoff(int64_t min, int64_t max, int failures);

/* Half of that for sure, the other half by chance, so that many who fail together do not come back
 * as one. */
int64_t df_backoff_pause(int64_t min, int64_t max, int failures);

#endif
