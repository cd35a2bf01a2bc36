#include "common/blob/head.h"

#include "common/base/clock.h"

enum { DIGITS = 32 };

int df_blob_head_new(const char *key, const struct df_blob_sizes *sizes, struct df_blob_head *ret,
                     struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    struct df_blob_head h = {
        .key = key, .chunk_size = sizes->stream_chunk, .tail = DF_BUF_INIT((size_t)sizes->blob)};
    if (df_sha256_hex(key, strlen(key), hex, err) < 0 || df_random(h.seal, sizeof(h.seal), err) < 0)
        return -1;
    (void)snprintf(h.name, sizeof(h.name), "dfb-%.*s", DIGITS, hex);
    *ret = h;
    explicit_bzero(h.seal, sizeof(h.seal));
    return 0;
}

void df_blob_head_free(struct df_blob_head *h)
{
    df_strs_free(&h->chunks);
    df_buf_wipe(&h->tail);
    explicit_bzero(h, sizeof(*h));
}

struct df_blob_chunk_name df_blob_chunk_name(const struct df_blob_head *h, const char *id)
{
    struct df_blob_chunk_name name;
    (void)snprintf(name.text, sizeof(name.text), "%s-%.20s", h->name, id);
    return name;
}
