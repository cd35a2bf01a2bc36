#include "spawner/store/packed.h"

#include <zstd.h>

#define LEVEL 1 /* the quickest; higher ones gain little on a few KiB */

int df_pack(const char *text, struct df_packed *ret, struct df_err *err)
{
    size_t n = strlen(text), room = ZSTD_compressBound(n);
    DF_FREE char *bytes = malloc(room);
    if (!bytes)
        return df_fail_oom(err);
    size_t len = ZSTD_compress(bytes, room, text, n, LEVEL);
    if (ZSTD_isError(len)) /* there is room for anything: only memory can fail it */
        return df_fail_oom(err);
    void *fitting = realloc(bytes, len);
    if (!fitting)
        return df_fail_oom(err);
    bytes = NULL;
    *ret = (struct df_packed){fitting, len, n};
    return 0;
}

int df_packed_copy(const struct df_packed *p, struct df_packed *ret, struct df_err *err)
{
    void *bytes = malloc(p->len ? p->len : 1);
    if (!bytes)
        return df_fail_oom(err);
    memcpy(bytes, p->bytes, p->len);
    *ret = (struct df_packed){bytes, p->len, p->text_len};
    return 0;
}

int df_unpack(const struct df_packed *p, char **ret, struct df_err *err)
{
    DF_FREE char *text = malloc(p->text_len + 1);
    if (!text)
        return df_fail_oom(err);
    if (ZSTD_decompress(text, p->text_len, p->bytes, p->len) != p->text_len)
        return df_fail_oom(err); /* they are our own bytes: as above */
    text[p->text_len] = '\0';
    *ret = DF_TAKE(text);
    return 0;
}

void df_packed_free(struct df_packed *p)
{
    free((void *)(uintptr_t)p->bytes);
    *p = (struct df_packed){0};
}
