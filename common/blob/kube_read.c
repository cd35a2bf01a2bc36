/*
 * Reading of blobs in a namespace: the head as it is now, and the chunks it names.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "common/blob/kube_home.h"

int df_blob_kube_absent(const char *key, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no blob %s", key);
}

static int fetch_chunk(struct df_blob *b, const struct df_blob_head *h, size_t i,
                       struct df_buf *out, struct df_err *err)
{
    DF_JSON cJSON *map = NULL;
    struct df_blob_chunk_name name = df_blob_chunk_name(h, h->chunks.items[i]);
    struct df_kube_at at = df_blob_kube_chunk_at(b, name.text);
    if (df_kube_get(df_blob_kube_of(b)->kube, &at, &map, err) < 0)
        return -1;
    return df_blob_chunk_parse(map, h, out, err);
}

/* Takes what a head names, from its beginning each time it is called. */
typedef int (*taking)(struct df_blob *b, const struct df_blob_head *h, void *arg,
                      struct df_err *err);

/* A chunk may be gone because the blob was replaced while we read: then it is read once more. */
static int read_whole(struct df_blob *b, const char *key, taking take, void *arg, int64_t *ret_size,
                      struct df_err *err)
{
    char version[40] = "";
    for (;;) {
        DF_BLOB_HEAD h = {0};
        struct df_err why = {0};
        if (df_blob_kube_head(b, key, false, &h, err) < 0)
            return -1;
        if (!*h.version)
            return df_blob_kube_absent(key, err);
        *ret_size = h.size;
        if (take(b, &h, arg, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_NOT_FOUND) {
            if (err)
                *err = why;
            return -1;
        }
        if (df_streq(version, h.version))
            return df_fail(err, DF_ERR_SYSTEM, "blob %s is damaged: restore it from a copy: %s",
                           key, why.message);
        memcpy(version, h.version, sizeof(version));
    }
}

static int take_to_file(struct df_blob *b, const struct df_blob_head *h, void *arg,
                        struct df_err *err)
{
    int fd = *(int *)arg;
    DF_CLEANUP(df_buf_wipe) struct df_buf chunk = DF_BUF_INIT((size_t)h->chunk_size);
    if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "empty a temporary file");
    for (size_t i = 0; i < h->chunks.len; i++) {
        df_buf_clear(&chunk);
        if (fetch_chunk(b, h, i, &chunk, err) < 0 ||
            df_fs_write_all(fd, df_buf_str(&chunk), chunk.len, err) < 0)
            return -1;
    }
    if (df_fs_write_all(fd, df_buf_str(&h->tail), h->tail.len, err) < 0)
        return -1;
    return lseek(fd, 0, SEEK_SET) < 0 ? df_fail_errno(err, errno, "rewind") : 0;
}

int df_blob_kube_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                           struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_fs_unnamed(b->tmp, &fd, err) < 0 ||
        read_whole(b, key, take_to_file, &fd, ret_size, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

struct range {
    int64_t offset;
    struct df_buf *out;
    size_t had; /* bytes of out that were there before */
};

/* Adds what of this piece, which begins at `base`, belongs to the range and has room. */
static void take_piece(const struct range *r, int64_t base, const struct df_buf *piece)
{
    size_t skip = r->offset > base ? (size_t)(r->offset - base) : 0;
    if (skip >= piece->len)
        return;
    size_t n = piece->len - skip, room = r->out->max - r->out->len;
    (void)df_buf_add(r->out, piece->data + skip, n < room ? n : room);
}

static int take_range(struct df_blob *b, const struct df_blob_head *h, void *arg,
                      struct df_err *err)
{
    const struct range *r = arg;
    DF_CLEANUP(df_buf_wipe) struct df_buf chunk = DF_BUF_INIT((size_t)h->chunk_size);
    r->out->len = r->had;
    for (size_t i = (size_t)(r->offset / h->chunk_size); i < h->chunks.len; i++) {
        if (r->out->len == r->out->max)
            return 0;
        df_buf_clear(&chunk);
        if (fetch_chunk(b, h, i, &chunk, err) < 0)
            return -1;
        take_piece(r, (int64_t)i * h->chunk_size, &chunk);
    }
    take_piece(r, (int64_t)h->chunks.len * h->chunk_size, &h->tail);
    return df_buf_check(r->out, err);
}

int df_blob_kube_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                         int64_t *ret_size, struct df_err *err)
{
    struct range r = {offset, out, out->len};
    int64_t size = 0;
    if (read_whole(b, key, take_range, &r, &size, err) < 0)
        return -1;
    *ret_size = size;
    return 0;
}
