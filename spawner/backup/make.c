/*
 * Members are opened one after the other: next_member() has their order. Each is a descriptor with
 * a size that is fixed when it is opened; its digest is a line of the sums, which are the last
 * member.
 */
#include "spawner/backup/make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/archive/ustar.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/backup/format.h"
#include "spawner/model/storage.h"

#define PIECE (64 * DF_KIB)

/* Files of the data directory. Without the key nobody needs an authority to be trusted either: a
 * new one is made. */
static const char *const secret_files[] = {DF_BACKUP_KEY, "tls/ca.pem", "tls/ca-key.pem"};

struct member {
    struct df_ustar head;
    int fd; /* -1: none is open */
    int64_t done;
    struct df_sha256_ctx *digest;
};

struct df_backup {
    struct df_spawner *s;
    bool with_key, has_blobs, holds;
    int64_t at_us;
    struct member now;
    struct df_strs keys; /* of the blobs */
    size_t stage, nth;   /* of next_member() */
    int database;        /* the copy; -1: it is a member, or was */
    int sums;            /* a file; the same */
};

/* ---- members -------------------------------------------------------------------------------- */

static int begin_member(struct df_backup *b, const char *name, int fd, int64_t size,
                        struct df_err *err)
{
    struct member m = {.fd = fd};
    m.head.size = size;
    if (snprintf(m.head.name, sizeof(m.head.name), "%s", name) >= (int)sizeof(m.head.name))
        return df_fail(err, DF_ERR_LIMIT, "%s: the name is too long for an archive", name);
    if (df_sha256_new(&m.digest, err) < 0)
        return -1;
    b->now = m;
    return 0;
}

static void end_member(struct df_backup *b)
{
    if (b->now.fd >= 0)
        (void)close(b->now.fd);
    df_sha256_free(b->now.digest);
    b->now = (struct member){.fd = -1};
}

/* The descriptor, which is taken, is at its start. */
static int begin_file(struct df_backup *b, const char *name, int *fd, struct df_err *err)
{
    struct stat st;
    if (fstat(*fd, &st) < 0)
        return df_fail_errno(err, errno, "%s", name);
    return begin_member(b, name, DF_TAKE_FD(*fd), st.st_size, err);
}

/* Executors whose states an archive never has. */
struct elsewhere {
    int64_t count;
    cJSON *executors; /* borrowed */
};

static int add_elsewhere(const cJSON *executor, void *arg, struct df_err *err)
{
    struct elsewhere *e = arg;
    const char *type = df_json_str(executor, "spec.storage.type");
    if (df_storage_is_managed(executor) || e->count++ >= DF_BACKUP_NAMED)
        return 0;
    return df_json_append(e->executors,
                          df_json_object(DF_STR("name", df_json_str(executor, "metadata.name")),
                                         DF_STR("type", type)),
                          err);
}

static int describe_elsewhere(const struct df_backup *b, cJSON *doc, struct df_err *err)
{
    DF_JSON cJSON *part = cJSON_CreateObject();
    struct elsewhere e = {.executors = df_json_array_at(part, "executors")};
    if (df_check_alloc(e.executors, err) < 0 ||
        df_store_each(b->s->store, DF_KIND_EXECUTOR, NULL, add_elsewhere, &e, err) < 0 ||
        df_json_add_num(part, "count", (double)e.count, err) < 0)
        return -1;
    return e.count ? df_json_add(doc, "elsewhere", DF_TAKE(part), err) : 0;
}

static int describe(const struct df_backup *b, cJSON *doc, struct df_err *err)
{
    if (df_json_put(doc, err, DF_NUM("format", DF_BACKUP_FORMAT), DF_STR("version", DF_VERSION),
                    DF_TIME("createdAt", b->at_us), DF_BOOL("key", b->with_key),
                    DF_BOOL("blobs", b->has_blobs)) < 0 ||
        describe_elsewhere(b, doc, err) < 0)
        return -1;
    return df_json_add_str(doc, "location", b->s->config->blob_location, err);
}

static int open_header(struct df_backup *b, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    DF_CLOSE int fd = -1;
    if (df_check_alloc(doc, err) < 0 || describe(b, doc, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(doc);
    if (df_check_alloc(text, err) < 0 ||
        df_fs_unnamed(df_blob_tmp_dir(b->s->blobs), &fd, err) < 0 ||
        df_fs_write_all(fd, text, strlen(text), err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "rewind");
    return begin_file(b, DF_BACKUP_HEADER, &fd, err);
}

/* The copy has a name only until it is open: a killed process leaves what the next one removes. */
static int copy_database(struct df_backup *b, struct df_err *err)
{
    char dice[17];
    if (df_random_hex(dice, 8, err) < 0)
        return -1;
    DF_FREE char *path = df_strf("%s/backup-%s.db", df_blob_tmp_dir(b->s->blobs), dice);
    if (!path)
        return df_fail_oom(err);
    int result = df_store_snapshot(b->s->store, path, err);
    b->database = result < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int failed = errno;
    (void)unlink(path);
    if (result == 0 && b->database < 0)
        return df_fail_errno(err, failed, "open %s", path);
    return result;
}

/* One that does not exist is left out. */
static int open_secret(struct df_backup *b, const char *name, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(b->s->config->data_directory, name);
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : df_fail_errno(err, errno, "open %s", path);
    return begin_file(b, name, &fd, err);
}

/* A lock that was released, or a file that was moved to its final place meanwhile, is left out. */
static int open_blob(struct df_backup *b, const char *key, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_err why = {0};
    DF_FREE char *name = df_strf("%s%s", DF_BACKUP_BLOBS, key);
    if (!name)
        return df_fail_oom(err);
    if (df_blob_open_read(b->s->blobs, key, &fd, &size, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    return begin_member(b, name, DF_TAKE_FD(fd), size, err);
}

static int list_blobs(struct df_backup *b, struct df_err *err)
{
    return b->has_blobs ? df_blob_list(b->s->blobs, "", &b->keys, err) : 0;
}

/* ---- the order ------------------------------------------------------------------------------ */

enum stage { HEADER, DATABASE, SECRETS, LIST, BLOBS, SUMS, END };

static int open_sums(struct df_backup *b, struct df_err *err)
{
    if (lseek(b->sums, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "rewind the sums");
    return begin_file(b, DF_BACKUP_SUMS, &b->sums, err);
}

/* Does the next thing of the present stage, which may open a member. */
static int next_thing(struct df_backup *b, struct df_err *err)
{
    switch ((enum stage)b->stage) {
    case HEADER:
        b->stage++;
        return open_header(b, err);
    case DATABASE:
        b->stage++;
        return begin_file(b, DF_BACKUP_DATABASE, &b->database, err);
    case SECRETS:
        if (b->with_key && b->nth < DF_ARRAY_SIZE(secret_files))
            return open_secret(b, secret_files[b->nth++], err);
        break;
    case LIST:
        if (list_blobs(b, err) < 0)
            return -1;
        break;
    case BLOBS:
        if (b->nth < b->keys.len)
            return open_blob(b, b->keys.items[b->nth++], err);
        break;
    case SUMS:
        b->stage++;
        return open_sums(b, err);
    case END:
        DF_BUG("a backup goes on behind its end");
    }
    b->stage++;
    b->nth = 0;
    return 0;
}

static int next_member(struct df_backup *b, struct df_err *err)
{
    while (b->now.fd < 0 && b->stage != END)
        if (next_thing(b, err) < 0)
            return -1;
    return 0;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static int add_head(struct df_backup *b, struct df_buf *out, struct df_err *err)
{
    char block[DF_USTAR_BLOCK];
    if (df_ustar_print(&b->now.head, b->at_us / 1000000, block, err) < 0)
        return -1;
    (void)df_buf_add(out, block, sizeof(block));
    return df_buf_check(out, err);
}

static int add_zeros(struct df_buf *out, size_t n, struct df_err *err)
{
    static const char zeros[2 * DF_USTAR_BLOCK];
    (void)df_buf_add(out, zeros, n);
    return df_buf_check(out, err);
}

static int note_digest(struct df_backup *b, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    if (b->sums < 0) /* they are the member */
        return 0;
    if (df_sha256_final_hex(b->now.digest, digest, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("%s  %s\n", digest, b->now.head.name);
    if (!line)
        return df_fail_oom(err);
    return df_fs_write_all(b->sums, line, strlen(line), err);
}

/* A stream only grows, but for bytes that were not acknowledged: when those of a failed append are
 * taken away again, the size in the header is wrong. */
static int add_content(struct df_backup *b, struct df_buf *out, struct df_err *err)
{
    struct member *m = &b->now;
    int64_t left = m->head.size - m->done;
    size_t want = left < (int64_t)PIECE ? (size_t)left : PIECE;
    char *to = df_buf_reserve(out, want);
    if (!to)
        return df_buf_check(out, err);
    ssize_t n = pread(m->fd, to, want, m->done);
    if (n < 0 && errno != EINTR)
        return df_fail_errno(err, errno, "read %s", m->head.name);
    if (n == 0)
        return df_fail(err, DF_ERR_RETRY, "%s became shorter meanwhile: try again", m->head.name);
    n = n < 0 ? 0 : n;
    out->len += (size_t)n;
    m->done += n;
    return df_sha256_update(m->digest, to, (size_t)n, err);
}

int df_backup_next(struct df_backup *b, struct df_buf *out, bool *ret_more, struct df_err *err)
{
    struct member *m = &b->now;
    bool begins = m->fd < 0;
    if (begins && next_member(b, err) < 0)
        return -1;
    if (m->fd < 0) { /* behind the last member */
        *ret_more = false;
        return add_zeros(out, (size_t)2 * DF_USTAR_BLOCK, err);
    }
    *ret_more = true;
    if (begins && add_head(b, out, err) < 0)
        return -1;
    if (m->done < m->head.size && add_content(b, out, err) < 0)
        return -1;
    if (m->done < m->head.size)
        return 0;
    if (note_digest(b, err) < 0 || add_zeros(out, df_ustar_padding(m->head.size), err) < 0)
        return -1;
    end_member(b);
    return 0;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int begin(struct df_backup *b, struct df_err *err)
{
    if (df_fs_unnamed(df_blob_tmp_dir(b->s->blobs), &b->sums, err) < 0)
        return -1;
    df_removals_hold(&b->s->removals);
    b->holds = true;
    return copy_database(b, err);
}

int df_backup_begin(struct df_spawner *s, bool with_key, struct df_backup **ret, struct df_err *err)
{
    struct df_backup *b = calloc(1, sizeof(*b));
    if (!b)
        return df_fail_oom(err);
    *b = (struct df_backup){.s = s,
                            .with_key = with_key,
                            .has_blobs = !s->config->blob_location,
                            .at_us = df_real_us(),
                            .now.fd = -1,
                            .database = -1,
                            .sums = -1};
    if (begin(b, err) < 0) {
        df_backup_end(b);
        return -1;
    }
    *ret = b;
    return 0;
}

void df_backup_end(struct df_backup *b)
{
    if (!b)
        return;
    end_member(b);
    if (b->database >= 0)
        (void)close(b->database);
    if (b->sums >= 0)
        (void)close(b->sums);
    if (b->holds)
        df_removals_release(&b->s->removals);
    df_strs_free(&b->keys);
    free(b);
}
