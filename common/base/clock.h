/*
 * clock.h - time and randomness behind one small table, so that tests can jump and repeat them.
 *
 * Monotonic time is for waiting and measuring; real time only for showing.
 * Thread rule: every function may be called from any thread; df_clock_install() only before
 * threads.
 */
#ifndef DF_BASE_CLOCK_H
#define DF_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

#include "common/base/err.h"

struct df_clock {
    int64_t (*mono_us)(void);                  /* microseconds since some fixed point */
    int64_t (*real_us)(void);                  /* microseconds since 1970-01-01T00:00:00Z */
    int (*fill_random)(void *bytes, size_t n); /* 0, or -1 with errno */
};

/* clock NULL: back to the system's clock. The table is borrowed for as long as it is installed. */
void df_clock_install(const struct df_clock *clock);

int64_t df_mono_us(void);
int64_t df_mono_ms(void);
int64_t df_real_us(void);

/* The system's monotonic time in that many microseconds, for pthread_cond_timedwait() on a
 * condition of df_cond_init(). A negative number counts as 0. */
struct timespec df_mono_after_us(int64_t us);
/* Makes such a condition. */
void df_cond_init(pthread_cond_t *cond);

/* Fills bytes from the kernel's generator. */
int df_random(void *bytes, size_t n, struct df_err *err) DF_MUST_CHECK;

/* 2 * n lower-case hex digits of randomness and a NUL into out (at least 2 * n + 1 bytes, n <= 64).
 */
int df_random_hex(char *out, size_t n, struct df_err *err) DF_MUST_CHECK;

/* A random (version 4) UUID, 36 characters and a NUL. */
int df_uuid(char out[37], struct df_err *err) DF_MUST_CHECK;

/* Seconds that somebody else named, in microseconds: from 0 to 30,000 years, so that a time can be
 * added. */
static inline int64_t df_seconds_us(int64_t seconds)
{
    const int64_t most = INT64_C(1000000000000);
    return 1000000 * (seconds < 0 ? 0 : seconds > most ? most : seconds);
}

#define DF_TIME_LEN 28 /* "2026-11-21T08:50:01.123456Z" and the NUL */

/* RFC 3339 in UTC with microseconds. Returns out. */
const char *df_time_format(int64_t real_us, char out[DF_TIME_LEN]);

/* Reads RFC 3339 (any fraction, Z or an offset) into microseconds since 1970. Class USER if it is
 * not. */
int df_time_parse(const char *text, int64_t *ret_real_us, struct df_err *err) DF_MUST_CHECK;

/* A duration as Go writes them ("90s", "1h30m", "1.5h", "250ms") in microseconds. Class USER if it
 * is not. */
int df_duration_parse(const char *text, int64_t *ret_us, struct df_err *err) DF_MUST_CHECK;

#endif
