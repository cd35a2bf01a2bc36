/*
 * util.h - ownership and compiler helpers that every file may use.
 *
 * Ownership is visible in the code: a local that owns something is declared with a DF_CLEANUP_*
 * attribute, and DF_TAKE() moves the value out when ownership goes to somebody else.
 */
#ifndef DF_BASE_UTIL_H
#define DF_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/banned.h"

#define DF_PRINTF(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))
#define DF_MUST_CHECK __attribute__((warn_unused_result))
/* unused: for clang the call at the end of the scope is no use. */
#define DF_CLEANUP(fn) __attribute__((cleanup(fn), unused))

#define DF_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Moves a pointer out of its owner: yields the value and leaves NULL behind. */
#define DF_TAKE(p)                                                                                 \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

/* The same for a file descriptor, whose "nothing" is -1. */
#define DF_TAKE_FD(fd)                                                                             \
    __extension__({                                                                                \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

static inline void df_cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void df_cleanup_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define DF_FREE DF_CLEANUP(df_cleanup_free)
#define DF_CLOSE DF_CLEANUP(df_cleanup_fd)

static inline bool df_streq(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static inline bool df_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline bool df_ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

/* Copies as much of the string as fits into size bytes (at least 1), and ends it with a NUL. */
static inline void df_copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%.*s", (int)size - 1, from);
}

static inline bool df_str_empty(const char *s)
{
    return !s || !*s;
}

/* FNV-1a, continued from h: for tables, not for what somebody may want to forge. */
#define DF_HASH_BEGIN UINT64_C(14695981039346656037)
static inline uint64_t df_hash(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = (const unsigned char *)bytes, *end = p + n; p < end; p++)
        h = (h ^ *p) * UINT64_C(1099511628211);
    return h;
}

static inline uint64_t df_hash_str(uint64_t h, const char *s)
{
    return df_hash(h, s, strlen(s));
}

/* Reads a stop flag that a signal handler or another thread sets; NULL: never stopped. */
static inline bool df_stopped(const volatile bool *flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Compares two secrets of equal length in constant time; unequal lengths are unequal at once. */
bool df_secret_equal(const char *a, const char *b);

/* realloc() for what may be secret: the first `used` bytes are kept, and wiped in the old memory.
 * NULL if there is no memory; the old one stays as it is then. */
void *df_realloc_wiped(void *old, size_t used, size_t size) DF_MUST_CHECK;

/* Overwrites a secret text with zeros, frees it, and leaves NULL. */
void df_str_wipe(char **s);

/* Gives the pages of freed memory back to the system, where something large is over: by itself the
 * allocator keeps them for a while. Any thread. */
void df_memory_trim(void);

#endif
