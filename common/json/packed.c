/*
 * packed.c - documents as compressed JSON text. A document that packs badly becomes the sample
 * (dictionary) for the later ones. Read df_pack(), then df_unpack().
 */
#include "common/json/packed.h"

#include <pthread.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    LEVEL = 1,        /* the fastest; higher levels gain little on a few KiB */
    MAX_SAMPLES = 16, /* enough for the different forms and sizes of one kind of document */
    MAX_SAMPLE = 16384,
    GOOD = 3, /* a document packed to a third of its text is packed well */
    ON_STACK = 16384
};

struct df_sample {
    size_t len;
    char text[];
};

struct df_packer {
    pthread_mutex_t packing, unpacking;
    /* zstd's working memory; it costs more to create than to use */
    ZSTD_CCtx *pack;   /* guarded by packing */
    ZSTD_DCtx *unpack; /* guarded by unpacking */
    struct df_sample *samples[MAX_SAMPLES];
    size_t sample_count; /* both guarded by packing; a sample itself never changes */
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
    while (p->sample_count)
        free(p->samples[--p->sample_count]);
    (void)ZSTD_freeCCtx(p->pack);
    (void)ZSTD_freeDCtx(p->unpack);
    (void)pthread_mutex_destroy(&p->packing);
    (void)pthread_mutex_destroy(&p->unpacking);
    free(p);
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Called under the lock of packing. Out of memory: no sample is kept, and packing works without it.
 */
static void keep_sample(struct df_packer *p, const char *text, size_t n)
{
    struct df_sample *s =
        p->sample_count < MAX_SAMPLES && n <= MAX_SAMPLE ? malloc(sizeof(*s) + n) : NULL;
    if (!s)
        return;
    s->len = n;
    memcpy(s->text, text, n);
    p->samples[p->sample_count++] = s;
}

static size_t pack_by_sample(struct df_packer *p, const char *text, size_t n, void *to, size_t room,
                             const struct df_sample **ret)
{
    (void)pthread_mutex_lock(&p->packing);
    const struct df_sample *s = p->sample_count ? p->samples[p->sample_count - 1] : NULL;
    size_t len = ZSTD_compress_usingDict(p->pack, to, room, text, n, s ? s->text : NULL,
                                         s ? s->len : 0, LEVEL);
    if (!ZSTD_isError(len) && len * GOOD > n)
        keep_sample(p, text, n);
    (void)pthread_mutex_unlock(&p->packing);
    *ret = s;
    return len;
}

static int pack_text(struct df_packer *p, const char *text, struct df_packed *ret,
                     struct df_err *err)
{
    size_t n = strlen(text), room = ZSTD_compressBound(n);
    const struct df_sample *sample = NULL;
    DF_FREE void *bytes = malloc(room);
    if (!bytes)
        return df_fail_oom(err);
    size_t len = pack_by_sample(p, text, n, bytes, room, &sample);
    /* The output buffer is large enough for any input, so only memory can be missing. */
    if (ZSTD_isError(len))
        return df_fail_oom(err);
    *ret = (struct df_packed){DF_TAKE(bytes), (uint32_t)len, (uint32_t)n, sample};
    return 0;
}

int df_pack(struct df_packer *p, const cJSON *tree, struct df_packed *ret, struct df_err *err)
{
    DF_FREE char *text = df_json_print_nul(tree);
    return text ? pack_text(p, text, ret, err) : df_fail_oom(err);
}

int df_unpack(struct df_packer *p, const struct df_packed *packed, cJSON **ret, struct df_err *err)
{
    const struct df_sample *s = packed->sample;
    char small[ON_STACK]; /* of most documents: the allocator is slow with buffers of some KiB */
    DF_FREE char *large = packed->text_len > sizeof(small) ? malloc(packed->text_len) : NULL;
    char *text = large ? large : small;
    if (packed->text_len > sizeof(small) && !large)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&p->unpacking);
    size_t n = ZSTD_decompress_usingDict(p->unpack, text, packed->text_len, packed->bytes,
                                         packed->len, s ? s->text : NULL, s ? s->len : 0);
    (void)pthread_mutex_unlock(&p->unpacking);
    if (ZSTD_isError(n) && ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return df_fail_oom(err);
    if (n != packed->text_len)
        return df_fail(err, DF_ERR_SYSTEM, "a packed document is damaged");
    return df_json_parse_nul(text, n, ret, err);
}

void df_packed_free(struct df_packed *p)
{
    free((void *)(uintptr_t)p->bytes);
    *p = (struct df_packed){0};
}
