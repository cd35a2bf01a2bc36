#include "common/blob/content.h"

#include <zstd.h>

/* Content that is sealed or compressed already only costs time: the level that tries least. */
enum { LEVEL = 3, LEVEL_IN_VAIN = -50, SAMPLE = 16 * 1024 };

static bool can_be_compressed(const char *bytes, size_t n)
{
    char packed[ZSTD_COMPRESSBOUND(SAMPLE)];
    if (n < (size_t)4 * SAMPLE)
        return true;
    size_t got = ZSTD_compress(packed, sizeof(packed), bytes + n / 2, SAMPLE, 1);
    bool can = ZSTD_isError(got) || got < SAMPLE - SAMPLE / 32;
    explicit_bzero(packed, sizeof(packed));
    return can;
}

int df_blob_pack(const void *bytes, size_t n, struct df_buf *out, struct df_err *err)
{
    size_t most = ZSTD_compressBound(n);
    char *to = df_buf_reserve(out, most);
    if (!to)
        return df_buf_check(out, err);
    size_t got =
        ZSTD_compress(to, most, bytes, n, can_be_compressed(bytes, n) ? LEVEL : LEVEL_IN_VAIN);
    if (ZSTD_isError(got))
        return df_fail(err, DF_ERR_SYSTEM, "compress: %s", ZSTD_getErrorName(got));
    out->len += got;
    to[got] = '\0';
    return 0;
}

int df_blob_unpack(const void *packed, size_t packed_n, size_t n, struct df_buf *out,
                   struct df_err *err)
{
    char *to = df_buf_reserve(out, n);
    if (!to)
        return df_buf_check(out, err);
    if (ZSTD_decompress(to, n, packed, packed_n) != n)
        return df_fail(err, DF_ERR_SYSTEM, "decompress: these are not %zu bytes of zstd", n);
    out->len += n;
    to[n] = '\0';
    return 0;
}
