#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/fetch.h"

struct copying {
    int to; /* the checkout */
    struct stat to_st;
    int64_t bytes;
};

/* Files of a work tree that are not part of the module: other tools' data, states, crash logs. */
static bool is_left_out(const struct df_tree_entry *e)
{
    if (df_streq(e->name, ".git") || df_streq(e->name, ".terraform"))
        return true;
    return S_ISREG(e->st->st_mode) &&
           (df_ends_with(e->name, ".tfstate") || df_ends_with(e->name, ".tfstate.backup") ||
            df_streq(e->name, "crash.log"));
}

static int copy_bytes(struct copying *c, int from, int to, const char *path, struct df_err *err)
{
    char bytes[65536];
    for (;;) {
        ssize_t n = read(from, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return df_fail_errno(err, errno, "read %s", path);
        if (n == 0)
            return 0;
        c->bytes += n;
        if (c->bytes > (int64_t)DF_LIMIT_ARCHIVE_BYTES)
            return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                                  "the directory holds more than %lld bytes: is it a module?",
                                  (long long)DF_LIMIT_ARCHIVE_BYTES);
        if (df_fs_write_all(to, bytes, (size_t)n, err) < 0)
            return df_err_wrap(err, "copy %s", path);
    }
}

static int copy_file(struct copying *c, const struct df_tree_entry *e, struct df_err *err)
{
    /* O_NONBLOCK: the file may have been replaced by a fifo. */
    DF_CLOSE int from = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return df_fail_errno(err, errno, "open %s", e->path);
    mode_t mode = e->st->st_mode & S_IXUSR ? 0755 : 0644;
    DF_CLOSE int to =
        openat(c->to, e->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (to < 0)
        return df_fail_errno(err, errno, "create %s", e->path);
    return copy_bytes(c, from, to, e->path, err);
}

static int copy_link(struct copying *c, const struct df_tree_entry *e, struct df_err *err)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    if (n < 0)
        return df_fail_errno(err, errno, "read the symbolic link %s", e->path);
    target[n] = '\0';
    return symlinkat(target, c->to, e->path) < 0
               ? df_fail_errno(err, errno, "create the symbolic link %s", e->path)
               : 0;
}

static int copy_directory(struct copying *c, const struct df_tree_entry *e, struct df_err *err)
{
    if (e->st->st_dev == c->to_st.st_dev && e->st->st_ino == c->to_st.st_ino)
        return df_source_refuse(err,
                                "the work directory lies inside the source (%s): name a folder "
                                "without it, or another data directory",
                                e->path);
    return mkdirat(c->to, e->path, 0755) < 0
               ? df_fail_errno(err, errno, "create directory %s", e->path)
               : 0;
}

static int copy_entry(struct copying *c, const struct df_tree_entry *e, struct df_err *err)
{
    switch (e->st->st_mode & S_IFMT) {
    case S_IFDIR:
        return copy_directory(c, e, err);
    case S_IFREG:
        return copy_file(c, e, err);
    case S_IFLNK:
        return copy_link(c, e, err);
    default:
        return df_source_refuse(err, "%s is a device, fifo or socket", e->path);
    }
}

static enum df_tree_visit copy_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    if (is_left_out(e))
        return DF_TREE_SKIP;
    return copy_entry(arg, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

/* A mounted ConfigMap or Secret has its files in a directory named after the time of the mount, and
 * ..data links to it. Copy only that directory: the name differs from pod to pod, and would change
 * the digest. A ..data that leads out of the directory is a link like any other, and is refused as
 * such. *ret_fd: the directory that has the files; the caller closes. */
static int open_mounted(int directory, int *ret_fd, struct df_err *err)
{
    DF_CLOSE int data = openat(directory, "..data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DF_FREE char *outer = data < 0 ? NULL : df_fs_path_of(directory, err);
    DF_FREE char *inner = data < 0 ? NULL : df_fs_path_of(data, err);
    if (data >= 0 && (!outer || !inner))
        return -1;
    if (data >= 0 && df_fs_is_within(inner, outer))
        *ret_fd = DF_TAKE_FD(data);
    else
        *ret_fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? df_fail_errno(err, errno, "open directory") : 0;
}

/* Opens what is copied, once: a path might lead elsewhere after the check. */
static int open_root(const struct df_fetch *f, int *ret_fd, struct df_err *err)
{
    const char *path = f->spec->path;
    DF_CLOSE int root = -1;
    DF_CLOSE int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return df_fail_errno(err, errno, "open directory %s", path);
    if (open_mounted(directory, &root, err) < 0 || df_fetch_check_shown(f, root, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(root);
    return 0;
}

int df_fetch_directory(const struct df_fetch *f, struct df_err *err)
{
    struct copying c = {.to = open(f->checkout, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    DF_CLOSE int to = c.to;
    DF_CLOSE int root = -1;
    if (to < 0 || fstat(to, &c.to_st) < 0)
        return df_fail_errno(err, errno, "open directory %s", f->checkout);
    if (open_root(f, &root, err) < 0)
        return -1;
    df_fetch_note(f, "copying %s", f->spec->path);
    return df_tree_walk_at(root, copy_visitor, &c, err) < 0
               ? df_err_wrap(err, "copy %s", f->spec->path)
               : 0;
}
