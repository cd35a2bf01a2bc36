#include "common/blob/content.h"

#include <zstd.h>

enum { LEVEL = 3 };

int df_blob_pack(const void *bytes, size_t n, struct df_buf *out, struct df_err *err)
{
    size_t most = ZSTD_compressBound(n);
    char *to = df_buf_reserve(out, most);
    if (!to)
        return df_buf_check(out, err);
    size_t got = ZSTD_compress(to, most, bytes, n, LEVEL);
    if (ZSTD_isError(got))
        return df_fail(err, DF_ERR_SYSTEM, "compress: %s", ZSTD_getErrorName(got));
    out->len += got;
    to[got] = '\0';
    return 0;
}

int df_blob_unpack(const struct df_buf *packed, size_t n, struct df_buf *out, struct df_err *err)
{
    char *to = df_buf_reserve(out, n);
    if (!to)
        return df_buf_check(out, err);
    if (ZSTD_decompress(to, n, df_buf_str(packed), packed->len) != n)
        return df_fail(err, DF_ERR_SYSTEM, "decompress: these are not %zu bytes of zstd", n);
    out->len += n;
    to[n] = '\0';
    return 0;
}
