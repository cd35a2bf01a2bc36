/*
 * fs.c - capped reads, then writes (write_whole() serves replace, write and create), then the
 * removal of trees by descriptors, so that no symbolic link is followed.
 */
#include "common/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* read(2) through EINTR. Returns the bytes, 0 at the end, or -1 with err. */
static ssize_t read_some(int fd, char *to, size_t room, struct df_err *err)
{
    ssize_t n;
    do {
        n = read(fd, to, room);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? df_fail_errno(err, errno, "read") : n;
}

int df_fs_read_fd(int fd, struct df_buf *b, struct df_err *err)
{
    for (;;) {
        /* One byte more than allowed tells "exactly full" from "too large". */
        size_t room = b->max - b->len < 65536 ? b->max - b->len : 65536;
        char extra;
        char *to = room ? df_buf_reserve(b, room) : &extra;
        if (!to)
            return df_buf_check(b, err);
        ssize_t n = read_some(fd, to, room ? room : 1, err);
        if (n <= 0)
            return (int)n;
        if (!room)
            return df_fail(err, DF_ERR_LIMIT, "more than %zu bytes", b->max);
        b->len += (size_t)n;
        b->data[b->len] = '\0';
    }
}

int df_fs_read(const char *path, struct df_buf *b, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (df_fs_read_fd(fd, b, err) < 0)
        return df_err_wrap(err, "%s", path);
    return 0;
}

int df_fs_read_private(const char *path, struct df_buf *b, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (st.st_uid != geteuid() || (st.st_mode & 077) || !S_ISREG(st.st_mode))
        return df_fail_reason(err, DF_ERR_DENIED, "NotPrivate",
                              "%s: others may read it (mode %04o): make it yours alone (`chmod "
                              "600 FILE`), and renew what is in it if somebody has",
                              path, (unsigned)(st.st_mode & 07777));
    return df_fs_read_fd(fd, b, err);
}

/* Follows no link on the way to path. */
static int open_unlinked(const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)flags,
                           .mode = flags & O_CREAT ? mode : 0,
                           .resolve = RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* an old kernel, or a filter */
        return open(path, flags | O_NOFOLLOW, mode);
    return (int)fd;
}

int df_fs_open_plain(const char *path, int flags, mode_t mode, int *ret_fd, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    /* Of a pipe in place of the file, open() would wait for the other end. */
    DF_CLOSE int fd = open_unlinked(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s is not a regular file", path);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

int df_fs_open_plain_dir(const char *path)
{
    return open_unlinked(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

char *df_fs_path_of(int fd, struct df_err *err)
{
    char link[32], path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    if (n < 0 || n == sizeof path || *path != '/') {
        (void)df_fail_errno(err, n < 0 ? errno : ENAMETOOLONG, "the path of an open file");
        return NULL;
    }
    char *copy = strndup(path, (size_t)n);
    if (!copy)
        (void)df_fail_oom(err);
    return copy;
}

bool df_fs_is_within(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || !path[n] || n == 1);
}

int df_fs_read_plain(const char *path, struct df_buf *b, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_fs_open_plain(path, O_RDONLY, 0, &fd, err) < 0)
        return -1;
    return df_fs_read_fd(fd, b, err) < 0 ? df_err_wrap(err, "%s", path) : 0;
}

int df_fs_read_at(int fd, int64_t offset, int64_t end, struct df_buf *b, struct df_err *err)
{
    size_t room = b->max - b->len;
    int64_t there = end > offset ? end - offset : 0;
    size_t want = there < (int64_t)room ? (size_t)there : room;
    char *to = df_buf_reserve(b, want);
    if (!to)
        return df_buf_check(b, err);
    size_t got = 0;
    while (got < want) {
        ssize_t n = pread(fd, to + got, want - got, offset + (int64_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return df_fail_errno(err, errno, "read");
        if (n == 0)
            break;
        got += (size_t)n;
    }
    b->len += got;
    to[got] = '\0';
    return 0;
}

int df_fs_write_all(int fd, const void *bytes, size_t n, struct df_err *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return df_fail_errno(err, errno, "write");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int df_fs_copy(int from, int to, int64_t *left, struct df_err *err)
{
    char bytes[64 * DF_KIB];
    for (;;) {
        ssize_t n = read_some(from, bytes, sizeof(bytes), err);
        if (n <= 0)
            return (int)n;
        if (left && n > *left)
            return df_fail(err, DF_ERR_LIMIT, "more than %lld bytes", (long long)*left);
        if (left)
            *left -= n;
        if (df_fs_write_all(to, bytes, (size_t)n, err) < 0)
            return -1;
    }
}

int df_fs_write_at(int fd, int64_t offset, const void *bytes, size_t n, struct df_err *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t done = pwrite(fd, p, n, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return df_fail_errno(err, errno, "write");
        p += done;
        offset += done;
        n -= (size_t)done;
    }
    return 0;
}

int df_fs_sync_dir(const char *path, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return df_fail_errno(err, errno, "sync directory %s", path);
    return 0;
}

static int sync_parent(const char *path, struct df_err *err)
{
    DF_FREE char *copy = strdup(path);
    if (!copy)
        return df_fail_oom(err);
    return df_fs_sync_dir(dirname(copy), err);
}

static int write_temporary(char *tmp, const void *bytes, size_t n, mode_t mode, bool durable,
                           struct df_err *err)
{
    DF_CLOSE int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", tmp);
    if (df_fs_write_all(fd, bytes, n, err) < 0)
        return df_err_wrap(err, "%s", tmp);
    if (fchmod(fd, mode) < 0 || (durable && fsync(fd) < 0))
        return df_fail_errno(err, errno, "sync %s", tmp);
    return 0;
}

int df_fs_unnamed(const char *directory, int *ret_fd, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(directory, ".unnamed-XXXXXX");
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || unlink(path) < 0)
        return df_fail_errno(err, errno, "create %s", path);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

int df_fs_lock(const char *path, mode_t mode, int *ret_fd, struct df_err *err)
{
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return df_fail_errno(err, errno, "lock %s", path);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

enum placing { PLACE_REPLACE, PLACE_CREATE, PLACE_NOT_DURABLE };

static int place_file(const char *tmp, const char *path, enum placing how, struct df_err *err)
{
    if (how != PLACE_CREATE)
        return rename(tmp, path) < 0 ? df_fail_errno(err, errno, "rename to %s", path) : 0;
    if (link(tmp, path) < 0)
        return df_fail_errno(err, errno, "create %s", path);
    (void)unlink(tmp);
    return 0;
}

static int write_whole(const char *path, const void *bytes, size_t n, mode_t mode, enum placing how,
                       struct df_err *err)
{
    DF_FREE char *tmp = path ? df_strf("%s.tmp-XXXXXX", path) : NULL;
    if (!tmp)
        return df_fail_oom(err);
    bool durable = how != PLACE_NOT_DURABLE;
    if (write_temporary(tmp, bytes, n, mode, durable, err) < 0 ||
        place_file(tmp, path, how, err) < 0) {
        (void)unlink(tmp);
        return -1;
    }
    return durable ? sync_parent(path, err) : 0;
}

int df_fs_replace(const char *path, const void *bytes, size_t n, mode_t mode, struct df_err *err)
{
    return write_whole(path, bytes, n, mode, PLACE_REPLACE, err);
}

int df_fs_write(const char *path, const void *bytes, size_t n, mode_t mode, struct df_err *err)
{
    return write_whole(path, bytes, n, mode, PLACE_NOT_DURABLE, err);
}

int df_fs_create(const char *path, const void *bytes, size_t n, mode_t mode, struct df_err *err)
{
    return write_whole(path, bytes, n, mode, PLACE_CREATE, err);
}

int df_fs_mkdirs(const char *path, mode_t mode, struct df_err *err)
{
    DF_FREE char *copy = path ? strdup(path) : NULL;
    if (!copy)
        return df_fail_oom(err);
    if (!*path)
        return df_fail(err, DF_ERR_USER, "the name of a directory is empty");
    for (char *p = copy + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char was = *p;
        *p = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return df_fail_errno(err, errno, "create directory %s", copy);
        if (!was)
            break;
        *p = was;
    }
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s is not a directory", path);
    return 0;
}

/* Deeper directories are moved up into the top one and removed from there, so that neither
 * descriptors nor stack grow with the depth. */
#define REMOVE_DEPTH 64

struct remover {
    int top;        /* the directory being removed, open */
    unsigned moved; /* how many were moved up into it */
    struct df_err *err;
};

static int remove_at(struct remover *r, int dir, const char *name, int depth);

static int move_up(struct remover *r, int dir, const char *name)
{
    /* A directory that gets another parent must be writable. */
    if (fchmodat(dir, name, 0700, 0) < 0)
        return df_fail_errno(r->err, errno, "make %s writable", name);
    for (;;) {
        char deep[32];
        (void)snprintf(deep, sizeof(deep), "deep-%u", r->moved++);
        if (renameat(dir, name, r->top, deep) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return df_fail_errno(r->err, errno, "remove directory %s", name);
    }
}

static int open_for_removal(int parent, const char *name, int *ret, struct df_err *err)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
        fd = openat(parent, name, flags);
    if (fd < 0)
        return df_fail_errno(err, errno, "open directory %s", name);
    (void)fchmod(fd, 0700);
    *ret = fd;
    return 0;
}

static int remove_entries(struct remover *r, int fd, int depth)
{
    DF_CLOSE int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        return df_fail_errno(r->err, errno, "read directory");
    (void)DF_TAKE_FD(copy);
    rewinddir(d);
    int result = 0;
    for (struct dirent *e; result == 0 && (e = readdir(d));)
        if (!df_streq(e->d_name, ".") && !df_streq(e->d_name, ".."))
            result = remove_at(r, fd, e->d_name, depth + 1);
    (void)closedir(d);
    return result;
}

static int empty_dir(struct remover *r, int parent, const char *name, int depth)
{
    DF_CLOSE int fd = -1;
    if (open_for_removal(parent, name, &fd, r->err) < 0)
        return -1;
    if (depth > 0)
        return remove_entries(r, fd, depth);
    r->top = fd;
    for (unsigned before = 0;; before = r->moved) {
        if (remove_entries(r, fd, depth) < 0)
            return -1;
        if (r->moved == before)
            return 0;
    }
}

static int remove_at(struct remover *r, int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return df_fail_errno(r->err, errno, "remove %s", name);
    if (depth >= REMOVE_DEPTH)
        return move_up(r, dir, name);
    if (empty_dir(r, dir, name, depth) < 0)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return df_fail_errno(r->err, errno, "remove directory %s", name);
    return 0;
}

int df_fs_remove_tree(const char *path, struct df_err *err)
{
    struct remover r = {.top = -1, .err = err};
    return path ? remove_at(&r, AT_FDCWD, path, 0) : df_fail_oom(err);
}

int df_fs_renew_dir(const char *path, struct df_err *err)
{
    return df_fs_remove_tree(path, err) < 0 ? -1 : df_fs_mkdirs(path, 0700, err);
}

char *df_fs_join(const char *dir, const char *name)
{
    if (!dir || !name)
        return NULL;
    return df_strf("%s%s%s", dir, df_ends_with(dir, "/") ? "" : "/", name);
}

bool df_fs_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}
