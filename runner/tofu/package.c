/*
 * package.c - the files of a provider's package: copy, checksum ("h1:" of the lock file), and the
 * record of the checksum. The record saves reading the package again. It counts only while inode,
 * size, mode and time of change of every file are the same (identify()).
 */
#include "runner/tofu/package.h"

#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"

enum { RECORD_MAX = 256 };

/* ---- the files, in the order of their names ---- */

struct file {
    char *path;
    struct stat st;
};

struct listing {
    struct file *files;
    size_t len, cap;
};

static void listing_free(struct listing *l)
{
    for (size_t i = 0; i < l->len; i++)
        free(l->files[i].path);
    free(l->files);
}

static enum df_tree_visit list_one(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct listing *l = (struct listing *)arg;
    if (S_ISDIR(e->st->st_mode))
        return DF_TREE_GO_ON;
    if (!S_ISREG(e->st->st_mode)) {
        (void)df_fail(err, DF_ERR_USER, "%s is not a file", e->path);
        return DF_TREE_FAIL;
    }
    if (df_has_control(e->path)) { /* the lines of the checksum could be of other files */
        (void)df_fail(err, DF_ERR_USER, "a name in it has a control character");
        return DF_TREE_FAIL;
    }
    if (l->len == DF_LIMIT_PACKAGE_FILES) {
        (void)df_fail(err, DF_ERR_LIMIT, "it has more than %d files", DF_LIMIT_PACKAGE_FILES);
        return DF_TREE_FAIL;
    }
    if (l->len == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        void *grown = reallocarray(l->files, cap, sizeof(*l->files));
        if (!grown) {
            (void)df_fail_oom(err);
            return DF_TREE_FAIL;
        }
        l->files = (struct file *)grown;
        l->cap = cap;
    }
    l->files[l->len] = (struct file){.path = strdup(e->path), .st = *e->st};
    if (!l->files[l->len].path) {
        (void)df_fail_oom(err);
        return DF_TREE_FAIL;
    }
    l->len++;
    return DF_TREE_GO_ON;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static int list(const char *directory, struct listing *l, struct df_err *err)
{
    if (df_tree_walk(directory, list_one, l, err) < 0)
        return df_err_wrap(err, "%s", directory);
    if (l->len == 0)
        return df_fail(err, DF_ERR_USER, "%s has no files", directory);
    qsort(l->files, l->len, sizeof(*l->files), by_path);
    return 0;
}

static int open_file(const char *directory, const char *name, int *ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(directory, name);
    if (!path)
        return df_fail_oom(err);
    *ret = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 ? df_fail_errno(err, errno, "open %s", path) : 0;
}

/* ---- a copy ---- */

/* EROFS, EINVAL: a file system that has nothing to sync. */
static int sync_file(int fd, struct df_err *err)
{
    return fdatasync(fd) < 0 && errno != EROFS && errno != EINVAL
               ? df_fail_errno(err, errno, "sync")
               : 0;
}

static int make_parent(const char *path, struct df_err *err)
{
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    return df_fs_mkdirs(parent, 0755, err);
}

static int copy_file(const char *directory, const struct file *f, const char *path, int64_t *left,
                     struct df_err *err)
{
    DF_CLOSE int from = -1;
    if (make_parent(path, err) < 0 || open_file(directory, f->path, &from, err) < 0)
        return -1;
    /* The checksum says nothing of modes: all are programs, as the tools unpack the one that
     * counts. */
    DF_CLOSE int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (to < 0)
        return df_fail_errno(err, errno, "create %s", path);
    struct df_err why = {0};
    if (df_fs_copy(from, to, left, &why) == 0 && sync_file(to, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_LIMIT && !why.os_errno) /* a full disk is of the class, too */
        return df_fail(err, DF_ERR_LIMIT, "the package has more than %lld bytes",
                       (long long)DF_LIMIT_PACKAGE_BYTES);
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "copy %s to %s", f->path, path);
}

int df_package_copy(const char *from, const char *to, struct df_err *err)
{
    DF_CLEANUP(listing_free) struct listing l = {0};
    int64_t left = DF_LIMIT_PACKAGE_BYTES;
    if (list(from, &l, err) < 0)
        return -1;
    for (size_t i = 0; i < l.len; i++) {
        DF_FREE char *path = df_fs_join(to, l.files[i].path);
        if (df_check_alloc(path, err) < 0 || copy_file(from, &l.files[i], path, &left, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the checksum ---- */

static int digest_file(const char *directory, const char *name, struct df_sha256_ctx *whole,
                       struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_CLOSE int fd = -1;
    if (open_file(directory, name, &fd, err) < 0 || df_sha256_file_hex(fd, hex, NULL, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("%s  %s\n", hex, name);
    return line ? df_sha256_update(whole, line, strlen(line), err) : df_fail_oom(err);
}

static unsigned nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* "h1:" and base64 of what hex says. */
static int print_h1(const char hex[DF_SHA256_HEX], char ret[DF_PACKAGE_H1], struct df_err *err)
{
    unsigned char bytes[DF_SHA256_LEN];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_PACKAGE_H1);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    if (df_base64_encode(bytes, sizeof(bytes), false, &text, err) < 0)
        return -1;
    (void)snprintf(ret, DF_PACKAGE_H1, "h1:%s", df_buf_str(&text));
    return 0;
}

static void free_sha256(struct df_sha256_ctx **c)
{
    df_sha256_free(*c);
}

static int digest(const char *directory, const struct listing *l, char ret[DF_PACKAGE_H1],
                  struct df_err *err)
{
    DF_CLEANUP(free_sha256) struct df_sha256_ctx *whole = NULL;
    char hex[DF_SHA256_HEX];
    if (df_sha256_new(&whole, err) < 0)
        return -1;
    for (size_t i = 0; i < l->len; i++)
        if (digest_file(directory, l->files[i].path, whole, err) < 0)
            return -1;
    return df_sha256_final_hex(whole, hex, err) < 0 ? -1 : print_h1(hex, ret, err);
}

int df_package_digest(const char *directory, char ret[DF_PACKAGE_H1], struct df_err *err)
{
    DF_CLEANUP(listing_free) struct listing l = {0};
    return list(directory, &l, err) < 0 ? -1 : digest(directory, &l, ret, err);
}

/* ---- its record ---- */

/* A digest of what changes whenever a file does. */
static int identify(const struct listing *l, char ret[DF_SHA256_HEX], struct df_err *err)
{
    DF_CLEANUP(free_sha256) struct df_sha256_ctx *whole = NULL;
    if (df_sha256_new(&whole, err) < 0)
        return -1;
    for (size_t i = 0; i < l->len; i++) {
        const struct stat *st = &l->files[i].st;
        /* Not the device: a network file system has another number on each node. */
        DF_FREE char *line =
            df_strf("%s %llu %lld %o %lld.%09ld\n", l->files[i].path,
                    (unsigned long long)st->st_ino, (long long)st->st_size, (unsigned)st->st_mode,
                    (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
        if (df_check_alloc(line, err) < 0 || df_sha256_update(whole, line, strlen(line), err) < 0)
            return -1;
    }
    return df_sha256_final_hex(whole, ret, err);
}

/* True if the record is about the package as it is. */
static bool read_record(const char *path, const char *identity, char ret[DF_PACKAGE_H1])
{
    DF_BUF struct df_buf text = DF_BUF_INIT(RECORD_MAX);
    const size_t h1 = DF_PACKAGE_H1 - 1;
    if (df_fs_read(path, &text, NULL) < 0 || text.len != h1 + 1 + DF_SHA256_HEX)
        return false;
    if (text.data[h1] != ' ' || strncmp(text.data + h1 + 1, identity, DF_SHA256_HEX - 1) != 0)
        return false;
    df_copy(ret, DF_PACKAGE_H1, text.data);
    return true;
}

int df_package_recall(const char *directory, char ret[DF_PACKAGE_H1], bool *ret_recorded,
                      struct df_err *err)
{
    DF_CLEANUP(listing_free) struct listing l = {0};
    DF_FREE char *record = df_strf("%s.h1", directory);
    char identity[DF_SHA256_HEX];
    if (df_check_alloc(record, err) < 0 || list(directory, &l, err) < 0 ||
        identify(&l, identity, err) < 0)
        return -1;
    *ret_recorded = read_record(record, identity, ret);
    return *ret_recorded ? 0 : digest(directory, &l, ret, err);
}

void df_package_record(const char *directory, const char *h1)
{
    DF_CLEANUP(listing_free) struct listing l = {0};
    DF_FREE char *record = df_strf("%s.h1", directory);
    char identity[DF_SHA256_HEX];
    if (!record || list(directory, &l, NULL) < 0 || identify(&l, identity, NULL) < 0)
        return;
    DF_FREE char *text = df_strf("%s %s\n", h1, identity);
    if (text)
        (void)!df_fs_write(record, text, strlen(text), 0644, NULL);
}
