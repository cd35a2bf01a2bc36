/*
 * memory.h - how much memory a test needed. A sanitizer keeps freed memory and shadows all of it,
 * so under one the flood is small and the peak not judged. Include behind cmocka.h.
 */
#ifndef DF_TEST_MEMORY_H
#define DF_TEST_MEMORY_H

#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* The most the process ever had, in KiB. */
static long peak_kib(void)
{
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return u.ru_maxrss;
}

static void assert_peak_below(long kib)
{
    if (!SANITIZED)
        assert_true(peak_kib() < kib);
}

#endif
