/*
 * Reads blobs in an object store: the current head and the chunks it names.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "common/base/fs.h"
#include "common/blob/chunked.h"
#include "common/blob/crew.h"

/* Reads the chunks of a head; each call starts from the beginning. */
typedef int (*read_chunks)(struct df_objects *o, const struct df_blob_head *h, void *arg,
                           struct df_err *err);

/* If the blob is replaced during the read, a chunk may be missing: then everything is read again.
 * *ret: the head that was read; one without a version if there is no such blob. */
static int read_whole(struct df_blob *b, const char *key, read_chunks take, void *arg,
                      struct df_blob_head *ret, struct df_err *err)
{
    struct df_objects *o = df_blob_chunked_of(b)->objects;
    char version[sizeof(((struct df_blob_head *)NULL)->version)] = "";
    for (;;) {
        DF_BLOB_HEAD h = {0};
        struct df_err why = {0};
        if (df_blob_head_new(key, &o->sizes, &h, err) < 0 || o->ops->head(o, true, &h, err) < 0)
            return -1;
        if (!*h.version || take(o, &h, arg, &why) == 0) {
            *ret = h;
            h = (struct df_blob_head){0};
            return 0;
        }
        if (why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
        if (df_streq(version, h.version))
            return df_fail_reason(err, DF_ERR_SYSTEM, DF_BLOB_DAMAGED,
                                  "blob %s is damaged: restore it from a copy: %s", key,
                                  why.message);
        memcpy(version, h.version, sizeof(version));
    }
}

struct fetching {
    struct df_objects *o;
    const struct df_blob_head *h;
    int fd;
    pthread_mutex_t writing; /* the kernel lets one write to a file at a time: others would spin */
};

/* The chunks come in any order, each to its place in the file. */
static int fetch_chunk(void *arg, size_t number, struct df_object_work *work, struct df_err *err)
{
    struct fetching *f = arg;
    size_t n = (size_t)f->h->chunk_size;
    const struct df_object_range whole = {f->h->chunks.items[number], 0, n};
    struct df_buf *chunk = &work->plain;
    df_buf_clear(chunk);
    if (f->o->ops->get(f->o, f->h, &whole, work, chunk, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&f->writing);
    int result = df_fs_write_at(f->fd, (int64_t)(number * n), df_buf_str(chunk), chunk->len, err);
    (void)pthread_mutex_unlock(&f->writing);
    return result;
}

static int take_to_file(struct df_objects *o, const struct df_blob_head *h, void *arg,
                        struct df_err *err)
{
    int fd = *(int *)arg;
    struct fetching f = {o, h, fd, PTHREAD_MUTEX_INITIALIZER};
    size_t begun = 0;
    if (ftruncate(fd, 0) < 0)
        return df_fail_errno(err, errno, "empty a temporary file");
    if (df_blob_crew_run(h->chunks.len, o->sizes.at_once, fetch_chunk, &f, &begun, err) < 0)
        return -1;
    return df_fs_write_at(fd, (int64_t)h->chunks.len * h->chunk_size, df_buf_str(&h->tail),
                          h->tail.len, err);
}

int df_blob_chunked_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                              struct df_err *err)
{
    DF_CLOSE int fd = -1;
    DF_BLOB_HEAD h = {0};
    if (df_fs_unnamed(b->tmp, &fd, err) < 0 || read_whole(b, key, take_to_file, &fd, &h, err) < 0)
        return -1;
    if (!*h.version)
        return df_blob_fail_absent(key, err);
    *ret_size = h.size;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

struct range {
    int64_t offset;
    struct df_buf *out;
    size_t had; /* bytes in out before the read */
};

/* Returns how many bytes of a piece (n bytes from `base`) belong to the range and fit; *ret_skip
 * bytes of it come before the range. */
static size_t overlap(const struct range *r, int64_t base, size_t n, size_t *ret_skip)
{
    size_t skip = r->offset > base ? (size_t)(r->offset - base) : 0;
    size_t room = r->out->max - r->out->len, rest = skip < n ? n - skip : 0;
    *ret_skip = skip;
    return rest < room ? rest : room;
}

static int take_range(struct df_objects *o, const struct df_blob_head *h, void *arg,
                      struct df_err *err)
{
    const struct range *r = arg;
    size_t skip = 0;
    DF_OBJECT_WORK work = DF_OBJECT_WORK_INIT;
    r->out->len = r->had;
    for (size_t i = (size_t)(r->offset / h->chunk_size); i < h->chunks.len; i++) {
        size_t n = overlap(r, (int64_t)i * h->chunk_size, (size_t)h->chunk_size, &skip);
        if (n == 0)
            return 0;
        const struct df_object_range part = {h->chunks.items[i], (int64_t)skip, n};
        if (o->ops->get(o, h, &part, &work, r->out, err) < 0)
            return -1;
    }
    size_t n = overlap(r, (int64_t)h->chunks.len * h->chunk_size, h->tail.len, &skip);
    if (n)
        (void)df_buf_add(r->out, h->tail.data + skip, n);
    return df_buf_check(r->out, err);
}

int df_blob_chunked_get(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                        int64_t *ret_size, struct df_err *err)
{
    struct range r = {offset, out, out->len};
    DF_BLOB_HEAD h = {0};
    if (read_whole(b, key, take_range, &r, &h, err) < 0)
        return -1;
    if (!*h.version)
        return df_blob_fail_absent(key, err);
    *ret_size = h.size;
    return 0;
}

int df_blob_chunked_read(struct df_blob *b, const char *key, struct df_buf *out,
                         struct df_blob_head *ret, struct df_err *err)
{
    struct range r = {0, out, out->len};
    return read_whole(b, key, take_range, &r, ret, err);
}
