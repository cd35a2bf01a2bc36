#include "spawner/store/packed.h"

#include <pthread.h>
#include <zstd.h>

#define LEVEL 1 /* the quickest; higher ones gain little on a few KiB */

struct df_packer {
    pthread_mutex_t packing, unpacking;
    ZSTD_CCtx *pack;   /* guarded by packing */
    ZSTD_DCtx *unpack; /* guarded by unpacking */
};

int df_packer_new(struct df_packer **ret, struct df_err *err)
{
    struct df_packer *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&p->packing, NULL);
    (void)pthread_mutex_init(&p->unpacking, NULL);
    p->pack = ZSTD_createCCtx();
    p->unpack = ZSTD_createDCtx();
    if (!p->pack || !p->unpack) {
        df_packer_free(p);
        return df_fail_oom(err);
    }
    *ret = p;
    return 0;
}

void df_packer_free(struct df_packer *p)
{
    if (!p)
        return;
    (void)ZSTD_freeCCtx(p->pack);
    (void)ZSTD_freeDCtx(p->unpack);
    (void)pthread_mutex_destroy(&p->packing);
    (void)pthread_mutex_destroy(&p->unpacking);
    free(p);
}

int df_pack(struct df_packer *p, const char *text, struct df_packed *ret, struct df_err *err)
{
    size_t n = strlen(text), room = ZSTD_compressBound(n);
    DF_FREE char *bytes = malloc(room);
    if (!bytes)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&p->packing);
    size_t len = ZSTD_compressCCtx(p->pack, bytes, room, text, n, LEVEL);
    (void)pthread_mutex_unlock(&p->packing);
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

int df_unpack(struct df_packer *p, const struct df_packed *packed, char **ret, struct df_err *err)
{
    DF_FREE char *text = malloc(packed->text_len + 1);
    if (!text)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&p->unpacking);
    size_t n = ZSTD_decompressDCtx(p->unpack, text, packed->text_len, packed->bytes, packed->len);
    (void)pthread_mutex_unlock(&p->unpacking);
    if (n != packed->text_len)
        return df_fail_oom(err); /* they are our own bytes: as above */
    text[packed->text_len] = '\0';
    *ret = DF_TAKE(text);
    return 0;
}

void df_packed_free(struct df_packed *p)
{
    free((void *)(uintptr_t)p->bytes);
    *p = (struct df_packed){0};
}
