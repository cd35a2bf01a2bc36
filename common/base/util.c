#include "common/base/util.h"

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
