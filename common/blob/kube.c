/*
 * Blobs in a namespace: see kube_head.h. Chunks are written first; then one create or update of the
 * head, which the API server lets only one writer do, makes them the blob.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/kube_home.h"

enum { TRIES = 16 }; /* against others who change the same head */

struct df_kube_at df_blob_kube_head_at(struct df_blob *b, const char *name)
{
    return (struct df_kube_at){
        .resource = &df_kube_secrets, .name_space = df_blob_kube_of(b)->name_space, .name = name};
}

struct df_kube_at df_blob_kube_chunk_at(struct df_blob *b, const char *name)
{
    struct df_kube_at at = df_blob_kube_head_at(b, name);
    at.resource = &df_kube_config_maps;
    return at;
}

static int pass_on(const struct df_err *why, struct df_err *err)
{
    if (err)
        *err = *why;
    return -1;
}

/* ---- heads and chunks ----------------------------------------------------------------------- */

int df_blob_kube_head(struct df_blob *b, const char *key, bool metadata_only,
                      struct df_blob_head *ret, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_blob_head_new(key, &h, err) < 0)
        return -1;
    struct df_kube_at at = df_blob_kube_head_at(b, h.name);
    at.metadata_only = metadata_only;
    if (df_kube_get(df_blob_kube_of(b)->kube, &at, &secret, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return pass_on(&why, err);
    if (secret && df_blob_head_parse(secret, key, metadata_only, &h, err) < 0)
        return -1;
    *ret = h;
    h = (struct df_blob_head){0};
    return 0;
}

static int create_object(struct df_blob *b, struct df_kube_at at, const cJSON *object,
                         struct df_err *err)
{
    struct df_err why = {0};
    at.metadata_only = true;
    if (df_kube_create(df_blob_kube_of(b)->kube, &at, object, NULL, &why) == 0)
        return 0;
    /* A quota that many count on at once is a conflict, too, but not the one that callers mean. */
    if (why.cls == DF_ERR_CONFLICT && !df_streq(why.reason, "AlreadyExists"))
        why.cls = DF_ERR_RETRY;
    return pass_on(&why, err);
}

static int add_chunk(struct df_blob *b, struct df_blob_head *h, const char *bytes,
                     struct df_err *err)
{
    char id[17];
    DF_JSON cJSON *map = NULL;
    if (df_random_hex(id, 8, err) < 0 ||
        df_blob_chunk_print(h, id, bytes, (size_t)h->chunk_size, &map, err) < 0)
        return -1;
    /* In the list before it is there: what fails half way is dropped by it. */
    (void)df_strs_add(&h->chunks, id);
    return df_strs_check(&h->chunks, err) < 0
               ? -1
               : create_object(b, df_blob_kube_chunk_at(b, NULL), map, err);
}

/* Stores all whole chunks at the front of the content; the rest is the tail. */
static int add_content(struct df_blob *b, struct df_blob_head *h, const char *bytes, size_t n,
                       struct df_err *err)
{
    size_t chunk = (size_t)h->chunk_size;
    for (; n >= chunk; bytes += chunk, n -= chunk) {
        if (add_chunk(b, h, bytes, err) < 0)
            return -1;
    }
    df_buf_clear(&h->tail);
    (void)df_buf_add(&h->tail, bytes, n);
    return df_buf_check(&h->tail, err);
}

/* The one moment at which the blob changes: CONFLICT when it is not as h->version says. */
static int swap_head(struct df_blob *b, const struct df_blob_head *h, const char *key,
                     struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_blob_head_print(h, key, &secret, err) < 0)
        return -1;
    if (!*h->version)
        return create_object(b, df_blob_kube_head_at(b, NULL), secret, err);
    struct df_kube_at at = df_blob_kube_head_at(b, h->name);
    at.metadata_only = true;
    if (df_kube_update(df_blob_kube_of(b)->kube, &at, secret, NULL, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_NOT_FOUND) /* deleted in the meantime */
        why.cls = DF_ERR_CONFLICT;
    return pass_on(&why, err);
}

void df_blob_kube_drop(struct df_blob *b, const struct df_strs *names)
{
    for (size_t i = 0; i < names->len; i++) {
        struct df_kube_at at = df_blob_kube_chunk_at(b, names->items[i]);
        struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
        (void)!df_kube_delete(df_blob_kube_of(b)->kube, &at, &o, NULL);
    }
}

/* Drops the head's chunks from number `first` on. */
static void drop_chunks(struct df_blob *b, const struct df_blob_head *h, size_t first)
{
    DF_STRS struct df_strs names = {0};
    for (size_t i = first; i < h->chunks.len; i++)
        (void)df_strs_add(&names, df_blob_chunk_name(h, h->chunks.items[i]).text);
    df_blob_kube_drop(b, &names);
}

/* What was not taken in is dropped, unless it may have been: its answer was lost. */
static int give_up(struct df_blob *b, const struct df_blob_head *h, size_t first, const char *key,
                   const struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_RETRY)
        drop_chunks(b, h, first);
    (void)pass_on(why, err);
    return df_err_wrap(err, "store blob %s", key);
}

/* ---- whole blobs ---------------------------------------------------------------------------- */

static int check_size(const char *key, uint64_t n, struct df_err *err)
{
    if (n <= DF_LIMIT_BLOB_KUBE)
        return 0;
    return df_fail(err, DF_ERR_LIMIT, "blob %s: in a cluster one has at most %zu bytes", key,
                   DF_LIMIT_BLOB_KUBE);
}

/* So that next to nothing is left over for the tail. */
static int64_t chunk_size_for(size_t n)
{
    size_t chunks = (n + DF_BLOB_CHUNK - 1) / DF_BLOB_CHUNK;
    return (int64_t)(n < DF_BLOB_INLINE ? DF_BLOB_STREAM_CHUNK : n / chunks);
}

/* A new head with this content; its chunks are stored, it is not. */
static int prepare(struct df_blob *b, const char *key, const char *bytes, size_t n,
                   struct df_blob_head *h, struct df_err *err)
{
    struct df_err why = {0};
    if (check_size(key, n, err) < 0 || df_blob_head_new(key, h, err) < 0)
        return -1;
    h->chunk_size = chunk_size_for(n);
    h->size = (int64_t)n;
    return add_content(b, h, bytes, n, &why) < 0 ? give_up(b, h, 0, key, &why, err) : 0;
}

static int create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                  struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    struct df_err why = {0};
    if (prepare(b, key, bytes, n, &h, err) < 0)
        return -1;
    return swap_head(b, &h, key, &why) < 0 ? give_up(b, &h, 0, key, &why, err) : 0;
}

/* Most blobs are put once, so the first try takes it for new. */
static int put(struct df_blob *b, const char *key, const void *bytes, size_t n, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    DF_BLOB_HEAD old = {0};
    struct df_err why = {0};
    if (prepare(b, key, bytes, n, &h, err) < 0)
        return -1;
    for (int i = 0; i < TRIES; i++) {
        if (swap_head(b, &h, key, &why) == 0) {
            drop_chunks(b, &old, 0);
            return 0;
        }
        df_blob_head_free(&old);
        old = (struct df_blob_head){0};
        if (why.cls != DF_ERR_CONFLICT || df_blob_kube_head(b, key, true, &old, &why) < 0)
            break;
        memcpy(h.version, old.version, sizeof(h.version));
    }
    return give_up(b, &h, 0, key, &why, err);
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

static int put_file(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    size_t n = 0;
    if (open_file(path, &fd, &n, err) < 0)
        return -1;
    void *bytes = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return df_fail_errno(err, errno, "map %s", path);
    int result = put(b, key, n ? bytes : "", n, err);
    if (n)
        (void)munmap(bytes, n);
    if (result == 0)
        (void)unlink(path);
    return result;
}

/* What is there is durable. */
static int sync_blob(struct df_blob *b, const char *key, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    if (df_blob_kube_head(b, key, true, &h, err) < 0)
        return -1;
    return *h.version ? 0 : df_blob_kube_absent(key, err);
}

static int get_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    if (df_blob_kube_head(b, key, true, &h, err) < 0)
        return -1;
    *ret_size = h.size;
    return 0;
}

static int delete_head(struct df_blob *b, const struct df_blob_head *h, struct df_err *err)
{
    struct df_kube_at at = df_blob_kube_head_at(b, h->name);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    o.resource_version = h->version; /* else its chunks would be other ones */
    return df_kube_delete(df_blob_kube_of(b)->kube, &at, &o, err);
}

static int remove_blob(struct df_blob *b, const char *key, struct df_err *err)
{
    struct df_err why = {0};
    for (int i = 0; i < TRIES; i++) {
        DF_BLOB_HEAD h = {0};
        if (df_blob_kube_head(b, key, true, &h, err) < 0)
            return -1;
        if (!*h.version)
            return 0;
        if (delete_head(b, &h, &why) == 0) {
            drop_chunks(b, &h, 0);
            return 0;
        }
        if (why.cls != DF_ERR_CONFLICT && why.cls != DF_ERR_NOT_FOUND)
            break;
    }
    (void)pass_on(&why, err);
    return df_err_wrap(err, "remove blob %s", key);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* The head with these bytes at its end; chunks that became full are stored, it is not. */
static int extend(struct df_blob *b, const char *key, struct df_blob_head *h, const void *bytes,
                  size_t n, struct df_err *err)
{
    if (check_size(key, (uint64_t)h->size + n, err) < 0)
        return -1;
    DF_CLEANUP(df_buf_wipe) struct df_buf content = DF_BUF_INIT(DF_LIMIT_BLOB_KUBE);
    (void)df_buf_add(&content, df_buf_str(&h->tail), h->tail.len);
    (void)df_buf_add(&content, bytes, n);
    if (df_buf_check(&content, err) < 0)
        return -1;
    h->size += (int64_t)n;
    return add_content(b, h, df_buf_str(&content), content.len, err);
}

/* What is to be appended where, and what a try found. */
struct addition {
    const char *key;
    int64_t offset;
    const void *bytes;
    size_t n;
    int64_t size; /* of the blob, as found or made */
    bool lost;    /* another writer was faster */
};

static int try_append(struct df_blob *b, struct addition *a, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    struct df_err why = {0};
    a->lost = false;
    if (df_blob_kube_head(b, a->key, false, &h, err) < 0)
        return -1;
    a->size = h.size;
    if (h.size != a->offset)
        return df_blob_fail_gap(a->key, h.size, a->offset, err);
    size_t had = h.chunks.len;
    if (extend(b, a->key, &h, a->bytes, a->n, &why) == 0 && swap_head(b, &h, a->key, &why) == 0) {
        a->size = h.size;
        return 0;
    }
    a->lost = why.cls == DF_ERR_CONFLICT;
    return give_up(b, &h, had, a->key, &why, err);
}

static int append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                  int64_t *ret_size, struct df_err *err)
{
    for (int i = 1;; i++) {
        struct addition a = {.key = key, .offset = offset, .bytes = bytes, .n = n};
        int result = try_append(b, &a, err);
        /* Who lost finds another size, or the same one when the other only touched the head. */
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

static void close_kube(struct df_blob *b)
{
    struct df_blob_kube *k = df_blob_kube_of(b);
    free(k->name_space);
    free(k);
}

static const struct df_blob_ops kube_ops = {
    .close = close_kube,
    .put = put,
    .create = create,
    .put_file = put_file,
    .stage_file = put_file,
    .sync = sync_blob,
    .open_read = df_blob_kube_open_read,
    .read_at = df_blob_kube_read_at,
    .remove = remove_blob,
    .remove_all = df_blob_kube_remove_all,
    .list = df_blob_kube_list,
    .append = append,
    .size = get_size,
};

int df_blob_kube_open(const struct df_blob_kube_options *o, struct df_blob **ret,
                      struct df_err *err)
{
    struct df_blob_kube *k = calloc(1, sizeof(*k));
    if (!k)
        return df_fail_oom(err);
    DF_BLOB struct df_blob *b = &k->blob;
    b->ops = &kube_ops;
    k->kube = o->kube;
    k->name_space = strdup(o->name_space);
    b->tmp = df_fs_join(o->directory, "tmp");
    if (!k->name_space || !b->tmp)
        return df_fail_oom(err);
    if (df_fs_remove_tree(b->tmp, err) < 0 || df_fs_mkdirs(b->tmp, 0700, err) < 0)
        return df_err_wrap(err, "temporary directory of blobs");
    *ret = DF_TAKE(b);
    return 0;
}
