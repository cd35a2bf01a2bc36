/*
 * The file <package>.use is made by whoever uses the package first, locked for all by who uses it
 * and by one alone who removes it, together with the package. Read df_plugin_use() and
 * df_plugin_room_make().
 */
#include "runner/tofu/plugin_use.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"

#define USE ".use"
#define DEPTH 4 /* <host>/<namespace>/<type>/<version>/<platform> */

/* ---- use ---- */

void df_plugin_uses_end(struct df_plugin_uses *u)
{
    for (size_t i = 0; i < u->len; i++)
        (void)close(u->fds[i]);
    free(u->fds);
    *u = (struct df_plugin_uses){0};
}

static int keep(struct df_plugin_uses *u, int *fd, struct df_err *err)
{
    int *grown = reallocarray(u->fds, u->len + 1, sizeof(*u->fds));
    if (!grown)
        return df_fail_oom(err);
    u->fds = grown;
    u->fds[u->len++] = DF_TAKE_FD(*fd);
    return 0;
}

/* Writable, as NFS wants it of who locks alone. */
static int open_use(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd >= 0 ? fd : open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_still(int fd, const char *path, const char *package)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino &&
           df_fs_exists(package);
}

int df_plugin_use(struct df_plugin_uses *u, const char *package, bool *ret, struct df_err *err)
{
    DF_FREE char *path = df_strf("%s" USE, package);
    struct stat st;
    if (!path)
        return df_fail_oom(err);
    *ret = lstat(package, &st) == 0;
    if (!*ret || !S_ISDIR(st.st_mode)) /* a link, which a tool itself wrote */
        return 0;
    DF_CLOSE int fd = open_use(path);
    if (fd < 0)
        return 0;
    *ret =
        (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) && is_still(fd, path, package);
    if (!*ret)
        return 0;
    (void)futimens(fd, NULL);
    return keep(u, &fd, err);
}

/* ---- room ---- */

struct package {
    char *path; /* in the cache */
    int64_t bytes;
    struct timespec used;
    bool is_noted; /* it has the file */
};

struct room {
    struct package *packages;
    size_t len, cap;
    int64_t bytes;
};

static void room_free(struct room *r)
{
    for (size_t i = 0; i < r->len; i++)
        free(r->packages[i].path);
    free(r->packages);
}

static int add_package(struct room *r, const char *path, struct df_err *err)
{
    if (r->len == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        struct package *grown = reallocarray(r->packages, cap, sizeof(*grown));
        if (!grown)
            return df_fail_oom(err);
        r->packages = grown;
        r->cap = cap;
    }
    r->packages[r->len] = (struct package){.path = strdup(path)};
    return df_check_alloc(r->packages[r->len++].path, err);
}

/* The file of a package comes after it. */
static void note_use(struct room *r, const char *path, struct timespec at)
{
    size_t n = strlen(path) - strlen(USE);
    for (size_t i = r->len; i-- > 0;) {
        struct package *p = &r->packages[i];
        if (strlen(p->path) == n && strncmp(p->path, path, n) == 0) {
            p->used = at;
            p->is_noted = true;
            return;
        }
    }
}

static enum df_tree_visit measure(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct room *r = arg;
    int depth = 0;
    for (const char *c = e->path; *c; c++)
        depth += *c == '/';
    if (*e->name == '.' && depth <= DEPTH)
        return DF_TREE_SKIP;
    if (depth == DEPTH && S_ISDIR(e->st->st_mode))
        return add_package(r, e->path, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
    if (depth == DEPTH && df_ends_with(e->name, USE))
        note_use(r, e->path, e->st->st_mtim);
    if (depth > DEPTH && S_ISREG(e->st->st_mode)) {
        r->packages[r->len - 1].bytes += e->st->st_size;
        r->bytes += e->st->st_size;
    }
    return DF_TREE_GO_ON;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct package *)a)->used;
    const struct timespec *y = &((const struct package *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* *ret: false if it is in use. The package goes first: without it the files say nothing. */
static int remove_package(const char *package, const char *gone, bool *ret, struct df_err *err)
{
    DF_FREE char *use = df_strf("%s" USE, package);
    DF_FREE char *record = df_strf("%s.h1", package);
    if (!use || !record)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(use, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    *ret = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!*ret)
        return 0;
    if (rename(package, gone) < 0)
        return df_fail_errno(err, errno, "rename %s", package);
    (void)unlink(record);
    (void)unlink(use);
    return 0;
}

int df_plugin_room_make(const char *cache, int64_t limit, const char *to, struct df_err *err)
{
    DF_CLEANUP(room_free) struct room r = {0};
    if (df_tree_walk(cache, measure, &r, err) < 0)
        return -1;
    if (r.len)
        qsort(r.packages, r.len, sizeof(*r.packages), by_use);
    for (size_t i = 0; i < r.len && r.bytes > limit; i++) {
        DF_FREE char *package = df_fs_join(cache, r.packages[i].path);
        DF_FREE char *gone = df_strf("%s/gone-%zu", to, i);
        bool is_removed = false;
        if (!package || !gone)
            return df_fail_oom(err);
        if (r.packages[i].is_noted && remove_package(package, gone, &is_removed, err) < 0)
            return -1;
        r.bytes -= is_removed ? r.packages[i].bytes : 0;
    }
    return 0;
}
