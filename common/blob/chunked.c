/*
 * Writes blobs in an object store (see head.h): first heads and chunks, then whole blobs, then
 * streams. The chunks are written first. Then one conditional put of the head, which only one
 * writer can win, makes them the blob. Then the chunks of the previous head are removed.
 */
#include "common/blob/chunked.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/crew.h"

enum { TRIES = 16 }; /* attempts while others change the same head */

static struct df_objects *objects_of(struct df_blob *b)
{
    return df_blob_chunked_of(b)->objects;
}

/* ---- heads and chunks ----------------------------------------------------------------------- */

static int read_head(struct df_blob *b, const char *key, bool whole, struct df_blob_head *ret,
                     struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    return df_blob_head_new(key, &o->sizes, ret, err) < 0 ? -1 : o->ops->head(o, whole, ret, err);
}

/* What is to be stored: bytes, or a file. */
struct content {
    const char *bytes; /* NULL: fd */
    int fd;
    size_t n;
};

/* The n bytes at offset. *ret: borrowed from the content or from own, which is filled then. */
static int read_piece(const struct content *c, size_t offset, size_t n, struct df_buf *own,
                      const char **ret, struct df_err *err)
{
    if (c->bytes) {
        *ret = c->bytes + offset;
        return 0;
    }
    if (df_fs_read_at(c->fd, (int64_t)offset, (int64_t)(offset + n), own, err) < 0)
        return -1;
    *ret = df_buf_str(own);
    return own->len == n ? 0 : df_fail(err, DF_ERR_CONFLICT, "the file became shorter");
}

struct storing {
    struct df_objects *o;
    struct df_blob_head *h;
    const struct content *content;
    size_t first; /* chunk: those before it are stored already */
};

static int store_chunk(void *arg, size_t number, struct df_object_work *work, struct df_err *err)
{
    const struct storing *s = arg;
    size_t n = (size_t)s->h->chunk_size;
    struct df_object_chunk chunk = {
        .id = s->h->chunks.items[s->first + number], .n = n, .work = work};
    const char *bytes = NULL;
    df_buf_clear(&work->plain);
    if (read_piece(s->content, number * n, n, &work->plain, &bytes, err) < 0)
        return -1;
    chunk.bytes = bytes;
    return s->o->ops->put(s->o, s->h, &chunk, err);
}

static int add_ids(struct df_blob_head *h, size_t n, struct df_err *err)
{
    char id[17];
    for (size_t i = 0; i < n; i++) {
        if (df_random_hex(id, 8, err) < 0)
            return -1;
        (void)df_strs_add(&h->chunks, id);
    }
    return df_strs_check(&h->chunks, err);
}

static void forget_ids(struct df_blob_head *h, size_t len)
{
    while (h->chunks.len > len) {
        free(h->chunks.items[--h->chunks.len]);
        h->chunks.items[h->chunks.len] = NULL;
    }
}

/* Stores all full chunks of the content; the rest becomes the tail. After a failure the list has
 * the ids of all that may be stored. */
static int add_content(struct df_objects *o, struct df_blob_head *h, const struct content *c,
                       struct df_err *err)
{
    struct storing s = {o, h, c, h->chunks.len};
    size_t chunk = (size_t)h->chunk_size, n = c->n / chunk, begun = 0;
    DF_CLEANUP(df_buf_wipe) struct df_buf own = DF_BUF_INIT(chunk);
    const char *rest = NULL;
    if (add_ids(h, n, err) < 0) {
        forget_ids(h, s.first);
        return -1;
    }
    if (df_blob_crew_run(n, o->sizes.at_once, store_chunk, &s, &begun, err) < 0) {
        forget_ids(h, s.first + begun);
        return -1;
    }
    if (read_piece(c, n * chunk, c->n % chunk, &own, &rest, err) < 0)
        return -1;
    df_buf_clear(&h->tail);
    (void)df_buf_add(&h->tail, rest, c->n % chunk);
    return df_buf_check(&h->tail, err);
}

/* For who appends to the blob next, or removes it. */
static void keep_head(struct df_blob *b, struct df_blob_head *h)
{
    if (objects_of(b)->tells_versions && *h->version)
        df_blob_head_cache_keep(&df_blob_chunked_of(b)->heads, h);
}

/* For who replaces the blob next, or removes it. */
static void keep_outline(struct df_blob *b, struct df_blob_head *h)
{
    if (!objects_of(b)->tells_versions || !*h->version)
        return;
    df_buf_wipe(&h->tail);
    explicit_bzero(h->seal, sizeof(h->seal));
    df_blob_head_cache_keep(&df_blob_chunked_of(b)->outlines, h);
}

/* The description of the blob as this process put it. */
static bool take_outline(struct df_blob *b, const char *key, struct df_blob_head *ret)
{
    return df_blob_head_cache_take(&df_blob_chunked_of(b)->outlines, key, ret) ||
           df_blob_head_cache_take(&df_blob_chunked_of(b)->heads, key, ret);
}

/* Writes the head, which atomically changes the blob. CONFLICT if the stored head is not
 * h->version. */
static int swap_head(struct df_objects *o, struct df_blob_head *h, struct df_err *err)
{
    return o->ops->put(o, h, NULL, err);
}

/* Removes the head's chunks from number `first` on. No head names them any more; a chunk that
 * cannot be removed is an orphan and is swept later. */
static void drop_chunks(struct df_objects *o, const struct df_blob_head *h, size_t first)
{
    for (size_t i = first; i < h->chunks.len; i++)
        (void)!o->ops->remove(o, NULL, df_blob_chunk_name(h, h->chunks.items[i]).text, NULL);
}

/* Is the stored head this one? curl sends a request again when a kept connection ends before its
 * answer: then the second is refused, although the first was done. Ids of chunks are random, so no
 * other put has them, and the size grows with each append. Heads without chunks need no such look:
 * nothing that they name can be dropped. */
static bool is_stored(const struct df_blob_head *h, const struct df_blob_head *stored)
{
    bool is_same = h->chunks.len && h->chunks.len == stored->chunks.len && h->size == stored->size;
    for (size_t i = 0; is_same && i < h->chunks.len; i++)
        is_same = df_streq(h->chunks.items[i], stored->chunks.items[i]);
    return is_same;
}

static void take_version(struct df_blob_head *h, const struct df_blob_head *stored)
{
    memcpy(h->version, stored->version, sizeof(h->version));
}

/* The reason of a put that was overtaken is for this file alone. */
static int pass_failure(const struct df_err *why, struct df_err *err)
{
    struct df_err plain = *why;
    if (df_streq(plain.reason, DF_OBJECT_OVERTAKEN))
        *plain.reason = '\0';
    return df_err_pass(err, &plain);
}

/* After a failed put, removes the new chunks, unless the answer was lost: then the head may name
 * them. */
static int drop_new_chunks(struct df_objects *o, const struct df_blob_head *h, size_t first,
                           const struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_RETRY)
        drop_chunks(o, h, first);
    (void)pass_failure(why, err);
    return df_err_wrap(err, "store blob %s", h->key);
}

/* ---- whole blobs ---------------------------------------------------------------------------- */

static int check_size(const struct df_objects *o, const char *key, uint64_t n, struct df_err *err)
{
    if (n <= (uint64_t)o->sizes.blob)
        return 0;
    return df_fail(err, DF_ERR_LIMIT, "blob %s: here one has at most %lld bytes", key,
                   (long long)o->sizes.blob);
}

/* Chooses the chunk size such that the tail is almost empty, or the whole content. */
static int64_t chunk_size_for(const struct df_blob_sizes *sizes, int64_t n)
{
    int64_t chunks = (n + sizes->chunk - 1) / sizes->chunk;
    if (n < sizes->no_chunks)
        return n < sizes->stream_chunk ? sizes->stream_chunk : n + 1;
    return n / chunks;
}

/* Prepares a new head for this content: stores its chunks, but not the head. */
static int prepare_head(struct df_objects *o, const char *key, const struct content *c,
                        struct df_blob_head *h, struct df_err *err)
{
    struct df_err why = {0};
    if (check_size(o, key, c->n, err) < 0 || df_blob_head_new(key, &o->sizes, h, err) < 0)
        return -1;
    h->chunk_size = chunk_size_for(&o->sizes, (int64_t)c->n);
    h->size = (int64_t)c->n;
    return add_content(o, h, c, &why) < 0 ? drop_new_chunks(o, h, 0, &why, err) : 0;
}

/* A put that is repeated until its outcome is known. */
struct putting {
    const char *key;
    const struct content *content;
    enum df_blob_how how;
    bool overtaken;      /* by another writer, after an attempt of ours without an answer */
    struct df_strs left; /* names of the chunks of such attempts; owned */
};

static int leave_chunks(struct putting *p, const struct df_blob_head *h, const struct df_err *why,
                        struct df_err *err)
{
    p->overtaken = df_streq(why->reason, DF_OBJECT_OVERTAKEN);
    for (size_t i = 0; p->overtaken && i < h->chunks.len; i++)
        (void)df_strs_add(&p->left, df_blob_chunk_name(h, h->chunks.items[i]).text);
    return df_strs_check(&p->left, err);
}

/* Most blobs are put once, so the first attempt assumes a new blob, or the one that this process
 * put before; for DF_BLOB_CREATE it is the only one. */
static int put_once(struct df_blob *b, struct putting *p, struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    DF_BLOB_HEAD h = {0};
    DF_BLOB_HEAD old = {0};
    struct df_err why = {0};
    bool again = p->overtaken, is_new = p->how == DF_BLOB_CREATE;
    p->overtaken = false;
    if (again && read_head(b, p->key, false, &old, err) < 0)
        return -1;
    if (!again && !is_new)
        (void)take_outline(b, p->key, &old);
    if (prepare_head(o, p->key, p->content, &h, err) < 0)
        return -1;
    for (int i = 0; i < TRIES; i++) {
        bool is_done = is_stored(&h, &old);
        take_version(&h, &old);
        if (is_done || swap_head(o, &h, &why) == 0) {
            drop_chunks(o, &old, is_done ? old.chunks.len : 0);
            (is_new ? keep_head : keep_outline)(b, &h);
            return 0;
        }
        df_blob_head_free(&old);
        if (why.cls != DF_ERR_CONFLICT || (is_new && !h.chunks.len) ||
            read_head(b, p->key, false, &old, &why) < 0 || (is_new && !is_stored(&h, &old)))
            break;
    }
    return leave_chunks(p, &h, &why, err) < 0 ? -1 : drop_new_chunks(o, &h, 0, &why, err);
}

/* A put that was overtaken is done once more with chunks of its own: whoever replaced its head has
 * removed those that this head named. For DF_BLOB_CREATE it stays unknown whose blob was the
 * first. */
static int put_content(struct df_blob *b, const char *key, const struct content *c,
                       enum df_blob_how how, struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    struct putting p = {.key = key, .content = c, .how = how};
    struct df_err why = {0};
    int result = put_once(b, &p, &why);
    for (int i = 1; i < TRIES && p.overtaken && how != DF_BLOB_CREATE; i++)
        result = put_once(b, &p, &why);
    /* No head can name them any more, because ours was put behind them all. */
    for (size_t i = 0; result == 0 && i < p.left.len; i++)
        (void)!o->ops->remove(o, NULL, p.left.items[i], NULL);
    df_strs_free(&p.left);
    return result < 0 ? df_err_pass(err, &why) : 0;
}

static int open_file(const char *path, int *ret_fd, size_t *ret_n, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    *ret_n = (size_t)st.st_size;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int put_file(struct df_blob *b, const char *key, const char *path, enum df_blob_how how,
                    struct df_err *err)
{
    DF_CLOSE int fd = -1;
    size_t n = 0;
    if (open_file(path, &fd, &n, err) < 0)
        return -1;
    const struct content c = {.fd = fd, .n = n};
    if (put_content(b, key, &c, how, err) < 0)
        return -1;
    (void)unlink(path);
    return 0;
}

static int put(struct df_blob *b, const char *key, const struct df_blob_content *content,
               enum df_blob_how how, struct df_err *err)
{
    const struct content c = {
        .bytes = content->bytes ? content->bytes : "", .fd = -1, .n = content->n};
    return content->path ? put_file(b, key, content->path, how, err)
                         : put_content(b, key, &c, how, err);
}

static int get_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    if (read_head(b, key, false, &h, err) < 0)
        return -1;
    *ret_size = h.size;
    return 0;
}

/* A removal, and what became of its last attempt. */
struct removal {
    const char *key;
    const struct df_blob_condition *condition; /* or NULL */
    bool is_first;                             /* attempt */
    enum df_blob_removal result;
    bool outdated; /* it was about a version that is none any more */
};

/* The blob as this process put it, without a request. */
static bool take_kept(struct df_blob *b, const struct removal *r, struct df_blob_head *h,
                      struct df_buf *content)
{
    if (!r->is_first)
        return false;
    if (!r->condition)
        return take_outline(b, r->key, h);
    if (!df_blob_head_cache_take(&df_blob_chunked_of(b)->heads, r->key, h))
        return false;
    if (!h->chunks.len && df_buf_add(content, df_buf_str(&h->tail), h->tail.len) == 0)
        return true;
    df_blob_head_free(h);
    return false;
}

static int read_removed(struct df_blob *b, const struct removal *r, struct df_blob_head *h,
                        struct df_buf *content, struct df_err *err)
{
    if (!r->condition)
        return read_head(b, r->key, false, h, err);
    return df_blob_chunked_read(b, r->key, content, h, err) < 0
               ? -1
               : df_blob_check_room(r->key, h->size, r->condition->max, err);
}

/* Removes the version that was read, or put by this process: another version has other chunks. */
static int try_remove(struct df_blob *b, struct removal *r, struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    DF_BLOB_HEAD h = {0};
    DF_BUF struct df_buf content = DF_BUF_INIT(r->condition ? r->condition->max : 0);
    struct df_err why = {0};
    bool is_kept = take_kept(b, r, &h, &content);
    if (!is_kept && read_removed(b, r, &h, &content, err) < 0)
        return -1;
    r->result = DF_BLOB_ABSENT;
    if (!*h.version)
        return 0;
    if (r->condition && !r->condition->agrees(r->condition->arg, &content)) {
        r->result = DF_BLOB_STAYS;
        r->outdated = is_kept;
        return 0;
    }
    r->result = DF_BLOB_REMOVED;
    if (o->ops->remove(o, &h, NULL, &why) == 0) {
        drop_chunks(o, &h, 0);
        return 0;
    }
    r->outdated = why.cls == DF_ERR_CONFLICT || why.cls == DF_ERR_NOT_FOUND;
    (void)pass_failure(&why, err);
    return df_err_wrap(err, "remove blob %s", r->key);
}

static int remove_blob(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                       enum df_blob_removal *ret, struct df_err *err)
{
    for (int i = 1;; i++) {
        struct removal r = {
            .key = key, .condition = c, .is_first = i == 1, .result = DF_BLOB_STAYS};
        struct df_err why = {0};
        int result = try_remove(b, &r, &why);
        if (r.outdated && i < TRIES)
            continue;
        *ret = r.result;
        return result < 0 ? df_err_pass(err, &why) : 0;
    }
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Appends the bytes to the head: stores chunks that became full, but not the head. */
static int extend_head(struct df_objects *o, struct df_blob_head *h, const void *bytes, size_t n,
                       struct df_err *err)
{
    if (check_size(o, h->key, (uint64_t)h->size + n, err) < 0)
        return -1;
    DF_CLEANUP(df_buf_wipe) struct df_buf content = DF_BUF_INIT((size_t)o->sizes.blob);
    (void)df_buf_add(&content, df_buf_str(&h->tail), h->tail.len);
    (void)df_buf_add(&content, bytes, n);
    if (df_buf_check(&content, err) < 0)
        return -1;
    h->size += (int64_t)n;
    const struct content c = {.bytes = df_buf_str(&content), .fd = -1, .n = content.len};
    return add_content(o, h, &c, err);
}

/* An append: its parameters and the result of an attempt. */
struct addition {
    const char *key;
    int64_t offset;
    const void *bytes;
    size_t n;
    bool is_first; /* attempt */
    int64_t size;  /* size of the blob as read or written */
    bool lost;     /* another writer was faster */
};

/* The head as this process put it last, if the blob ends there where the addition begins; the head
 * of a new blob, if it begins with this addition; else as it is stored. If one of the former two is
 * outdated, the put of the new head fails, and the next attempt reads what is stored. */
static int open_grown(struct df_blob *b, const struct addition *a, struct df_blob_head *ret,
                      struct df_err *err)
{
    if (df_blob_head_cache_take(&df_blob_chunked_of(b)->heads, a->key, ret)) {
        if (ret->size == a->offset)
            return 0;
        df_blob_head_free(ret);
    }
    if (a->is_first && a->offset == 0)
        return df_blob_head_new(a->key, &objects_of(b)->sizes, ret, err);
    return read_head(b, a->key, true, ret, err);
}

/* Was the head put, although that was refused? Sets its version then. */
static bool is_put(struct df_blob *b, struct df_blob_head *h, const struct df_err *why)
{
    DF_BLOB_HEAD now = {0};
    if (why->cls != DF_ERR_CONFLICT || read_head(b, h->key, false, &now, NULL) < 0 ||
        !is_stored(h, &now))
        return false;
    take_version(h, &now);
    return true;
}

static int try_append(struct df_blob *b, struct addition *a, struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    DF_BLOB_HEAD h = {0};
    struct df_err why = {0};
    a->lost = false;
    if (open_grown(b, a, &h, err) < 0)
        return -1;
    a->size = h.size;
    if (h.size != a->offset)
        return df_blob_fail_gap(a->key, h.size, a->offset, err);
    size_t had = h.chunks.len;
    if (extend_head(o, &h, a->bytes, a->n, &why) == 0 &&
        (swap_head(o, &h, &why) == 0 || (h.chunks.len > had && is_put(b, &h, &why)))) {
        a->size = h.size;
        keep_head(b, &h);
        return 0;
    }
    a->lost = why.cls == DF_ERR_CONFLICT;
    return drop_new_chunks(o, &h, had, &why, err);
}

static int append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                  int64_t *ret_size, struct df_err *err)
{
    for (int i = 1;; i++) {
        struct addition a = {
            .key = key, .offset = offset, .bytes = bytes, .n = n, .is_first = i == 1};
        int result = try_append(b, &a, err);
        /* After a lost race the next attempt finds a new size, or the same one if the other writer
         * only touched the head. */
        if (a.lost && i < TRIES)
            continue;
        if (a.lost && err)
            err->cls = DF_ERR_RETRY;
        if (result == 0 || a.size != offset)
            *ret_size = a.size;
        return result;
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_chunked(struct df_blob *b)
{
    struct df_objects *o = objects_of(b);
    o->ops->close(o);
    df_blob_head_cache_free(&df_blob_chunked_of(b)->heads);
    df_blob_head_cache_free(&df_blob_chunked_of(b)->outlines);
    free(df_blob_chunked_of(b));
}

static void hasten(struct df_blob *b)
{
    struct df_objects *o = objects_of(b);
    if (o->ops->hasten)
        o->ops->hasten(o);
}

static int check_owner(struct df_blob *b, bool at_once, struct df_err *err)
{
    struct df_objects *o = objects_of(b);
    return o->ops->check_owner ? o->ops->check_owner(o, at_once, err) : 0;
}

static const struct df_blob_ops ops = {
    .close = close_chunked,
    .hasten = hasten,
    .put = put,
    .append = append,
    .get = df_blob_chunked_get,
    .open_read = df_blob_chunked_open_read,
    .size = get_size,
    .remove = remove_blob,
    .list = df_blob_chunked_list,
    .each = df_blob_chunked_each,
    .check_owner = check_owner,
};

int df_blob_chunked_open(struct df_objects *objects, const char *directory, struct df_blob **ret,
                         struct df_err *err)
{
    struct df_blob_chunked *c = calloc(1, sizeof(*c));
    if (!c) {
        objects->ops->close(objects);
        return df_fail_oom(err);
    }
    DF_BLOB struct df_blob *b = &c->blob;
    b->ops = &ops;
    c->objects = objects;
    if (df_blob_head_cache_init(&c->heads, DF_LIMIT_BLOB_HEADS, err) < 0 ||
        df_blob_head_cache_init(&c->outlines, DF_LIMIT_BLOB_OUTLINES, err) < 0)
        return -1;
    b->tmp = df_fs_join(directory, "tmp");
    if (df_fs_renew_dir(b->tmp, err) < 0)
        return df_err_wrap(err, "temporary directory of blobs");
    *ret = DF_TAKE(b);
    return 0;
}
