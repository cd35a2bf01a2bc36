/*
 * object_dir.h - an object store as plain as one can be, to test what lies over it: files in a
 * directory, and a lock around each change.
 *
 * It fails where a test wants it to: operation number fail_at gets no answer.
 */
#ifndef DF_TEST_OBJECT_DIR_H
#define DF_TEST_OBJECT_DIR_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/chunked.h"

struct object_dir {
    struct df_objects objects;
    char *path;
};

enum object_fault {
    OBJECT_DIES_BEFORE, /* neither it nor any later one is done, as if the process were killed */
    OBJECT_DIES_AFTER,  /* it is done, no later one is */
    OBJECT_ANSWER_LOST, /* it is done, and so are the later ones */
    OBJECT_SENT_TWICE,  /* a put is done, and its repetition answered; the later ones are done */
};

static struct {
    long calls, fail_at; /* 0: all is well */
    enum object_fault how;
} object_fault;

static inline int object_lost(struct df_err *err)
{
    return df_fail(err, DF_ERR_RETRY, "no answer");
}

/* Numbers the operation. Is it one of those that are not done? */
static inline bool object_dies_before(long *ret_number)
{
    long n = __atomic_add_fetch(&object_fault.calls, 1, __ATOMIC_SEQ_CST);
    long at = object_fault.fail_at;
    *ret_number = n;
    if (at && n == at)
        return object_fault.how == OBJECT_DIES_BEFORE;
    return at && n > at && object_fault.how < OBJECT_ANSWER_LOST;
}

static inline bool object_is_repeated(long number)
{
    return number == object_fault.fail_at && object_fault.how == OBJECT_SENT_TWICE;
}

static inline int object_end(long number, int result, struct df_err *err)
{
    return number == object_fault.fail_at && object_fault.how != OBJECT_SENT_TWICE
               ? object_lost(err)
               : result;
}

/* The caller frees. NULL with err on no memory. */
static inline char *object_path(struct df_objects *o, const char *name, struct df_err *err)
{
    char *path = df_fs_join(((struct object_dir *)o)->path, name);
    if (!path)
        (void)df_fail_oom(err);
    return path;
}

/* ---- heads as files: five lines, the seal, the tail ----------------------------------------- */

static inline char *object_line(char **rest)
{
    return strsep(rest, "\n");
}

static inline int object_read_head(const char *path, bool whole, struct df_blob_head *h, char **key,
                                   struct df_err *err)
{
    struct df_err why = {0};
    DF_BUF struct df_buf b = DF_BUF_INIT(4 * DF_MIB);
    if (df_fs_read(path, &b, &why) < 0) {
        if (why.cls != DF_ERR_NOT_FOUND && err)
            *err = why;
        return why.cls == DF_ERR_NOT_FOUND ? 0 : -1;
    }
    char *rest = b.data;
    (void)snprintf(h->version, sizeof(h->version), "%s", object_line(&rest));
    const char *named = object_line(&rest);
    h->size = strtoll(object_line(&rest), NULL, 10);
    h->chunk_size = strtoll(object_line(&rest), NULL, 10);
    char *ids = object_line(&rest);
    for (char *id = strsep(&ids, " "); id && *id; id = strsep(&ids, " "))
        (void)df_strs_add(&h->chunks, id);
    if (key && !(*key = strdup(named)))
        return df_fail_oom(err);
    if (whole) {
        memcpy(h->seal, rest, sizeof(h->seal));
        rest += sizeof(h->seal);
        (void)df_buf_add(&h->tail, rest, (size_t)(b.data + b.len - rest));
    }
    return df_buf_check(&h->tail, err) < 0 ? -1 : df_strs_check(&h->chunks, err);
}

/* Whole or not at all; the caller has the lock. */
static inline int object_write(struct df_objects *o, const char *path, const void *bytes, size_t n,
                               struct df_err *err)
{
    DF_FREE char *unfinished = object_path(o, "unfinished", err);
    if (!unfinished || df_fs_write(unfinished, bytes, n, 0600, err) < 0)
        return -1;
    return rename(unfinished, path) < 0 ? df_fail_errno(err, errno, "rename") : 0;
}

static inline int object_write_head(struct df_objects *o, const char *path, struct df_blob_head *h,
                                    struct df_err *err)
{
    char version[17];
    DF_BUF struct df_buf b = DF_BUF_INIT(4 * DF_MIB);
    DF_FREE char *ids = df_strs_join(&h->chunks, " ");
    if (!ids)
        return df_fail_oom(err);
    if (df_random_hex(version, 8, err) < 0)
        return -1;
    (void)df_buf_addf(&b, "%s\n%s\n%lld\n%lld\n%s\n", version, h->key, (long long)h->size,
                      (long long)h->chunk_size, ids);
    (void)df_buf_add(&b, h->seal, sizeof(h->seal));
    (void)df_buf_add(&b, df_buf_str(&h->tail), h->tail.len);
    if (df_buf_check(&b, err) < 0 || object_write(o, path, b.data, b.len, err) < 0)
        return -1;
    (void)snprintf(h->version, sizeof(h->version), "%s", version);
    return 0;
}

/* ---- the five operations -------------------------------------------------------------------- */

/* Of one change; the descriptor is the lock. */
static inline int object_lock(struct df_objects *o, struct df_err *err)
{
    DF_FREE char *path = object_path(o, "lock", err);
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fd;
}

static inline int object_is(const char *path, const char *version, struct df_err *err)
{
    const struct df_blob_sizes sizes = {.blob = (int64_t)(4 * DF_MIB)};
    DF_BLOB_HEAD now = {0};
    if (df_blob_head_new("", &sizes, &now, err) < 0 ||
        object_read_head(path, false, &now, NULL, err) < 0)
        return -1;
    return df_streq(now.version, version) ? 0 : df_fail(err, DF_ERR_CONFLICT, "it has changed");
}

static inline int object_head(struct df_objects *o, bool whole, struct df_blob_head *h,
                              struct df_err *err)
{
    long number = 0;
    DF_FREE char *path = object_path(o, h->name, err);
    if (!path)
        return -1;
    if (object_dies_before(&number))
        return object_lost(err);
    return object_end(number, object_read_head(path, whole, h, NULL, err), err);
}

static inline int object_get(struct df_objects *o, const struct df_blob_head *h,
                             const struct df_object_range *r, struct df_object_work *work,
                             struct df_buf *out, struct df_err *err)
{
    long number = 0;
    (void)work;
    DF_FREE char *path = object_path(o, df_blob_chunk_name(h, r->id).text, err);
    DF_CLOSE int fd = -1;
    if (!path)
        return -1;
    if (object_dies_before(&number))
        return object_lost(err);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    return object_end(number, df_fs_read_at(fd, r->offset, r->offset + (int64_t)r->n, out, err),
                      err);
}

static inline int object_put_once(struct df_objects *o, const char *path, struct df_blob_head *h,
                                  const struct df_object_chunk *chunk, struct df_err *err)
{
    if (chunk)
        return object_write(o, path, chunk->bytes, chunk->n, err);
    return object_is(path, h->version, err) < 0 ? -1 : object_write_head(o, path, h, err);
}

static inline int object_put(struct df_objects *o, struct df_blob_head *h,
                             const struct df_object_chunk *chunk, struct df_err *err)
{
    long number = 0;
    DF_FREE char *path =
        object_path(o, chunk ? df_blob_chunk_name(h, chunk->id).text : h->name, err);
    if (!path)
        return -1;
    if (object_dies_before(&number))
        return object_lost(err);
    DF_CLOSE int lock = object_lock(o, err);
    if (lock < 0)
        return -1;
    char version[sizeof(h->version)];
    memcpy(version, h->version, sizeof(version)); /* a head gets a new one */
    int result = object_put_once(o, path, h, chunk, err);
    if (result == 0 && object_is_repeated(number)) {
        memcpy(h->version, version, sizeof(version));
        result = object_put_once(o, path, h, chunk, err);
    }
    return object_end(number, result, err);
}

static inline int object_remove(struct df_objects *o, const struct df_blob_head *h,
                                const char *chunk, struct df_err *err)
{
    long number = 0;
    DF_FREE char *path = object_path(o, chunk ? chunk : h->name, err);
    if (!path)
        return -1;
    if (object_dies_before(&number))
        return object_lost(err);
    DF_CLOSE int lock = object_lock(o, err);
    if (lock < 0)
        return -1;
    int result = chunk ? 0 : object_is(path, h->version, err);
    if (result == 0 && unlink(path) < 0)
        result = df_fail_errno(err, errno, "remove %s", path);
    return object_end(number, result, err);
}

static inline bool object_is_a(const char *name, enum df_object_kind kind)
{
    size_t head = strlen("dfb-") + 32;
    return df_starts_with(name, "dfb-") && (strlen(name) > head) == (kind == DF_OBJECT_CHUNK);
}

static inline int object_give_chunk(const char *path, const char *name,
                                    const struct df_object_sink *sink, struct df_err *err)
{
    const struct df_strs none = {0};
    struct stat st;
    if (stat(path, &st) < 0)
        return 0; /* just removed */
    const struct df_object_item item = {
        .name = name, .made_us = (int64_t)st.st_mtime * 1000000, .size = st.st_size};
    return sink->item(sink->arg, &item, &none, err);
}

static inline int object_give_head(const char *path, const char *name,
                                   const struct df_object_sink *sink, struct df_err *err)
{
    DF_FREE char *key = NULL;
    DF_STRS struct df_strs names = {0};
    DF_BLOB_HEAD h = {0};
    if (object_read_head(path, false, &h, &key, err) < 0)
        return -1;
    if (!key)
        return 0; /* just removed */
    (void)snprintf(h.name, sizeof(h.name), "%s", name);
    for (size_t i = 0; i < h.chunks.len; i++)
        (void)df_strs_add(&names, df_blob_chunk_name(&h, h.chunks.items[i]).text);
    if (df_strs_check(&names, err) < 0)
        return -1;
    struct stat st;
    const struct df_object_item item = {.name = key, .size = stat(path, &st) == 0 ? st.st_size : 0};
    return sink->item(sink->arg, &item, &names, err);
}

static inline int object_give(struct df_objects *o, enum df_object_kind kind, const char *name,
                              const struct df_object_sink *sink, struct df_err *err)
{
    DF_FREE char *path = object_path(o, name, err);
    if (!path)
        return -1;
    return kind == DF_OBJECT_CHUNK ? object_give_chunk(path, name, sink, err)
                                   : object_give_head(path, name, sink, err);
}

static inline int object_list(struct df_objects *o, enum df_object_kind kind, const char *prefix,
                              const struct df_object_sink *sink, struct df_err *err)
{
    long number = 0;
    int result = 0;
    (void)prefix;
    if (object_dies_before(&number))
        return object_lost(err);
    sink->begin(sink->arg);
    DIR *d = opendir(((struct object_dir *)o)->path);
    if (!d)
        return df_fail_errno(err, errno, "list");
    for (const struct dirent *e; result == 0 && (e = readdir(d));)
        if (object_is_a(e->d_name, kind))
            result = object_give(o, kind, e->d_name, sink, err);
    (void)closedir(d);
    return object_end(number, result, err);
}

static inline void object_close(struct df_objects *o)
{
    free(((struct object_dir *)o)->path);
    free(o);
}

/* Blobs over the store at `path`; directory: their temporary files. */
static inline int object_dir_open(const char *path, const char *directory,
                                  const struct df_blob_sizes *sizes, struct df_blob **ret,
                                  struct df_err *err)
{
    static const struct df_object_ops ops = {.close = object_close,
                                             .head = object_head,
                                             .get = object_get,
                                             .put = object_put,
                                             .remove = object_remove,
                                             .list = object_list};
    if (df_fs_mkdirs(path, 0700, err) < 0)
        return -1;
    struct object_dir *o = calloc(1, sizeof(*o));
    char *copy = strdup(path);
    if (!o || !copy) {
        free(o);
        free(copy);
        return df_fail_oom(err);
    }
    *o = (struct object_dir){{&ops, *sizes, .tells_versions = true}, copy};
    return df_blob_chunked_open(&o->objects, directory, ret, err);
}

#endif
