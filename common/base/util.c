#include "common/base/util.h"

#include <malloc.h>

bool df_secret_equal(const char *a, const char *b)
{
    size_t n = strlen(a);
    if (n != strlen(b))
        return false;
    unsigned diff = 0;
    for (size_t i = 0; i < n; i++)
        diff |= (unsigned)(unsigned char)a[i] ^ (unsigned char)b[i];
    return diff == 0;
}

/* Of jemalloc, if the program is linked with it; else NULL. */
extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));
#define ALL_ARENAS "4096" /* MALLCTL_ARENAS_ALL */

void df_memory_trim(void)
{
    if (mallctl) {
        (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
        (void)mallctl("arena." ALL_ARENAS ".purge", NULL, NULL, NULL, 0);
        return;
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)malloc_trim(0);
#endif
    /* A sanitizer has its own heap. The C library's is then still uninitialised, and two threads
     * that use it first at the same time break it. */
}

void *df_realloc_wiped(void *old, size_t used, size_t size)
{
    void *grown = malloc(size);
    if (!grown || !old)
        return grown;
    memcpy(grown, old, used);
    explicit_bzero(old, used);
    free(old);
    return grown;
}

void df_str_wipe(char **s)
{
    if (*s)
        explicit_bzero(*s, strlen(*s));
    free(DF_TAKE(*s));
}
