/*
 * streams.c - the log and the events of a step are append-only blobs. Read append_frame(): it locks
 * the mutex of the step, skips the bytes that are stored already, appends the rest and wakes the
 * subscribers.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/journal/journal.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"
#include "spawner/steps/streams.h"

static void stream_key(const char *uid, enum df_stream stream, char ret[96])
{
    (void)snprintf(ret, 96, "logs/%s.%s", uid, stream == DF_STREAM_LOG ? "log" : "events");
}

/* The mutex that serializes appends to the streams of a step. Steps share a fixed number of
 * them. */
static pthread_mutex_t *lock_of(const char *uid)
{
#define FOUR(x) x, x, x, x
    static pthread_mutex_t locks[] = {FOUR(FOUR(PTHREAD_MUTEX_INITIALIZER)),
                                      FOUR(FOUR(PTHREAD_MUTEX_INITIALIZER))};
#undef FOUR
    return &locks[df_hash_str(DF_HASH_BEGIN, uid) % DF_ARRAY_SIZE(locks)];
}

/* ---- writing ---- */

/* Removes from the frame the bytes that are stored already: a runner repeats a frame if the
 * response was lost. */
static void cut_overlap(struct df_frame *f, int64_t end)
{
    int64_t known = end - f->offset;
    size_t skip = known < (int64_t)f->n ? (size_t)known : f->n;
    f->bytes += skip;
    f->n -= skip;
    f->offset = end;
}

/* Tries to append at the frame's offset, because the stream nearly always ends there. If it does
 * not, *end is the real end: skip the overlap and try again. */
static int append_locked(struct df_spawner *s, const char *key, struct df_frame f, int64_t *ret_end,
                         struct df_err *err)
{
    for (;;) {
        int64_t end = f.offset;
        struct df_err why = {0};
        if (f.offset + (int64_t)f.n > (int64_t)DF_LIMIT_STREAM)
            return df_fail(err, DF_ERR_LIMIT, "the stream is longer than %zu bytes",
                           DF_LIMIT_STREAM);
        int result = f.n ? df_blob_append(s->blobs, key, f.offset, f.bytes, f.n, &end, &why)
                         : df_blob_size(s->blobs, key, &end, &why);
        if (result < 0 && why.cls != DF_ERR_CONFLICT)
            return df_err_pass(err, &why);
        if (f.offset > end)
            return df_fail_reason(err, DF_ERR_CONFLICT, "Gap",
                                  "the stream ends at %lld, the frame begins at %lld",
                                  (long long)end, (long long)f.offset);
        if (result == 0) {
            *ret_end = end;
            return 0;
        }
        cut_overlap(&f, end);
    }
}

static int append_frame(struct df_spawner *s, const char *name, const char *uid, struct df_frame f,
                        int64_t *ret_end, struct df_err *err)
{
    char key[96];
    stream_key(uid, f.stream, key);
    pthread_mutex_t *lock = lock_of(uid);
    (void)pthread_mutex_lock(lock);
    int result = append_locked(s, key, f, ret_end, err);
    (void)pthread_mutex_unlock(lock);
    if (result == 0)
        df_journal_touch(s->journal, name);
    return result;
}

int df_step_append(struct df_spawner *s, const char *uid, const char *token,
                   const struct df_frame *frame, int64_t *ret_end, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (frame->n > DF_LIMIT_STREAM_FRAME || frame->offset < 0)
        return df_fail(err, DF_ERR_LIMIT, "a frame has at most %zu bytes", DF_LIMIT_STREAM_FRAME);
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    return append_frame(s, df_json_str(task, "metadata.name"), uid, *frame, ret_end, err);
}

int df_step_stream_end(struct df_spawner *s, const char *uid, const char *token,
                       enum df_stream stream, int64_t *ret_end, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    char key[96];
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    stream_key(uid, stream, key);
    return df_blob_size(s->blobs, key, ret_end, err);
}

/* ---- reading ---- */

int df_step_read(struct df_spawner *s, const char *uid, enum df_stream stream, int64_t offset,
                 struct df_buf *b, int64_t *ret_end, struct df_err *err)
{
    char key[96];
    int64_t end = 0;
    struct df_err why = {0};
    stream_key(uid, stream, key);
    if (offset >= 0 && df_blob_read_at(s->blobs, key, offset, b, &end, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (offset < 0 || offset > end)
        return df_fail(err, DF_ERR_USER, "offset %lld: the stream has %lld bytes",
                       (long long)offset, (long long)end);
    *ret_end = end;
    return 0;
}

int df_step_log_size(struct df_spawner *s, const char *uid, int64_t *ret, struct df_err *err)
{
    char key[96];
    stream_key(uid, DF_STREAM_LOG, key);
    return df_blob_size(s->blobs, key, ret, err);
}

/* ---- for the reconcilers ---- */

int df_stream_append(struct df_spawner *s, const struct df_engine_step *step,
                     const struct df_frame *frame, int64_t *ret_end, struct df_err *err)
{
    return append_frame(s, step->name, step->uid, *frame, ret_end, err);
}

int df_stream_complete(struct df_spawner *s, const struct df_engine_step *step,
                       enum df_stream stream, const char *path, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    int64_t end = 0;
    char key[96];
    stream_key(step->uid, stream, key);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (df_blob_size(s->blobs, key, &end, err) < 0)
        return -1;
    while (end < st.st_size) {
        DF_BUF struct df_buf piece = DF_BUF_INIT(DF_LIMIT_STREAM_FRAME);
        if (df_fs_read_at(fd, end, st.st_size, &piece, err) < 0)
            return -1;
        const struct df_frame frame = {stream, end, df_buf_str(&piece), piece.len};
        if (append_frame(s, step->name, step->uid, frame, &end, err) < 0)
            return -1;
        if (!piece.len)
            return 0; /* the file was truncated meanwhile */
    }
    return 0;
}

int df_stream_delete(struct df_spawner *s, const char *task_uid, struct df_err *err)
{
    static const enum df_stream both[] = {DF_STREAM_LOG, DF_STREAM_EVENTS};
    char key[96];
    for (size_t i = 0; i < DF_ARRAY_SIZE(both); i++) {
        stream_key(task_uid, both[i], key);
        if (df_blob_delete(s->blobs, key, err) < 0)
            return -1;
    }
    return 0;
}
