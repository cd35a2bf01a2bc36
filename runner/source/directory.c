/*
 * Copies a directory of this machine. What editors make beside files and what .terraformignore
 * names is left out. A symbolic link that stays in the directory is copied as one; another is
 * followed if the source says so (a laptop, where the caller could read the same), else copied as
 * it is, for the check of all links to refuse. Read df_fetch_directory() at the end, then
 * copy_visitor().
 */
#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/fetch.h"
#include "runner/source/ignore.h"

#define SAID_MAX 20 /* lines of the log about what is left out */

struct copying {
    const struct df_fetch *f;
    int to; /* the checkout */
    struct stat to_st;
    struct df_ignore ignore;
    int64_t left; /* bytes that may still be copied */
    size_t entries, said;
};

/* A directory that is copied: the source, or one that a link leads to. */
struct tree {
    struct copying *c;
    int root;
    struct stat st;
    const char *at;           /* its path in the source; "" */
    const struct tree *outer; /* that has the link; NULL of the source */
};

/* ---- what is left out ---- */

static void say_left_out(struct copying *c, const char *path, const char *why)
{
    if (c->said++ < SAID_MAX)
        df_fetch_note(c->f, "left out: %s, %s", path, why);
    else if (c->said == SAID_MAX + 1)
        df_fetch_note(c->f, "left out: and others");
}

/* Files of a work tree that are not part of the module: other tools' data, states, crash logs. */
static bool is_left_out(const struct df_tree_entry *e)
{
    if (df_streq(e->name, ".git") || df_streq(e->name, ".terraform"))
        return true;
    return S_ISREG(e->st->st_mode) &&
           (df_ends_with(e->name, ".tfstate") || df_ends_with(e->name, ".tfstate.backup") ||
            df_streq(e->name, "crash.log"));
}

/* ---- entries ---- */

static int copy_open_file(struct copying *c, int from, mode_t mode, const char *path,
                          struct df_err *err)
{
    DF_CLOSE int to = openat(c->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             mode & S_IXUSR ? 0755 : 0644);
    if (to < 0)
        return df_fail_errno(err, errno, "create %s", path);
    struct df_err why = {0};
    if (df_fs_copy(from, to, &c->left, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_LIMIT || why.os_errno) { /* a full disk is of the class, too */
        (void)df_err_pass(err, &why);
        return df_err_wrap(err, "copy %s", path);
    }
    return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                          "the directory holds more than %lld bytes: is it a module? What it "
                          "does not need can be named in " DF_IGNORE_FILE,
                          (long long)DF_LIMIT_ARCHIVE_BYTES);
}

static int copy_file(struct copying *c, const struct df_tree_entry *e, const char *path,
                     struct df_err *err)
{
    /* O_NONBLOCK: the file may have been replaced by a fifo. */
    DF_CLOSE int from = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return df_fail_errno(err, errno, "open %s", path);
    return copy_open_file(c, from, e->st->st_mode, path, err);
}

static int make_directory(struct copying *c, const char *path, struct df_err *err)
{
    return mkdirat(c->to, path, 0755) < 0 ? df_fail_errno(err, errno, "create directory %s", path)
                                          : 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int fail_circle(const char *link, struct df_err *err)
{
    return df_source_refuse(
        err,
        "the symbolic link \"%s\" leads to what it is in: remove it, or name it "
        "in " DF_IGNORE_FILE,
        link);
}

static int copy_directory(struct tree *t, const struct df_tree_entry *e, const char *path,
                          struct df_err *err)
{
    if (is_same_file(e->st, &t->c->to_st))
        return df_source_refuse(err,
                                "the work directory lies inside the source (%s): name a folder "
                                "without it, or another data directory",
                                path);
    for (const struct tree *o = t; o; o = o->outer)
        if (is_same_file(e->st, &o->st))
            return fail_circle(t->at, err);
    DF_CLOSE int fd = openat(e->dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open directory %s", path);
    return df_ignore_read(&t->c->ignore, fd, path, err) < 0 ? -1 : make_directory(t->c, path, err);
}

/* ---- links ---- */

static int copy_link(struct copying *c, const struct df_tree_entry *e, const char *path,
                     struct df_err *err)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    if (n < 0)
        return df_fail_errno(err, errno, "read the symbolic link %s", path);
    target[n] = '\0';
    return symlinkat(target, c->to, path) < 0
               ? df_fail_errno(err, errno, "create the symbolic link %s", path)
               : 0;
}

/* Links that tools make to their results, which a module seldom reads and which may be huge: of nix
 * and bazel. */
static bool is_result(const char *name)
{
    return df_streq(name, "result") || df_starts_with(name, "result-") ||
           df_starts_with(name, "bazel-");
}

/* Why what a link leads to is not copied; NULL: it is. */
static const char *fault_of_target(const struct copying *c, const struct df_tree_entry *e,
                                   const char *path, int fd, const struct stat *st)
{
    DF_FREE char *real = df_fs_path_of(fd, NULL);
    static const char *const kernel[] = {"/proc", "/sys", "/dev"};
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return "a link to a device, fifo or socket";
    for (size_t i = 0; i < DF_ARRAY_SIZE(kernel); i++)
        if (!real || df_fs_is_within(real, kernel[i]))
            return "a link to what is no file";
    bool is_wanted = df_ignore_of(&c->ignore, path, true) == DF_IGNORE_KEPT;
    return S_ISDIR(st->st_mode) && is_result(e->name) && !is_wanted
               ? "a link to the results of a build (a line ! and its name in " DF_IGNORE_FILE
                 " takes it along)"
               : NULL;
}

static int check_hidden(const struct copying *c, int fd, const char *path, struct df_err *err)
{
    if (!c->f->hidden || !df_wall_touches_hidden(c->f->hidden, fd))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "SourceRefused",
                          "the symbolic link \"%s\" leads to the data directory, a key of the "
                          "service or temporary files "
                          "of steps, or to a directory that has one of them, and no step may see "
                          "these: remove the link, "
                          "or name it in " DF_IGNORE_FILE,
                          path);
}

static enum df_tree_visit copy_visitor(void *arg, const struct df_tree_entry *e,
                                       struct df_err *err);

/* Refuses a link to a directory that is being copied, and a chain of links. */
static int check_chain(const struct tree *inner, struct df_err *err)
{
    int links = 0;
    bool is_circle = false;
    for (const struct tree *t = inner->outer; t; t = t->outer) {
        links++;
        is_circle = is_circle || is_same_file(&t->st, &inner->st);
    }
    if (is_circle)
        return fail_circle(inner->at, err);
    if (links <= DF_LIMIT_FOLLOWED_LINKS)
        return 0;
    return df_source_refuse(err,
                            "the symbolic link \"%s\" leads on through more than %d links: remove "
                            "it, or name it in " DF_IGNORE_FILE,
                            inner->at, DF_LIMIT_FOLLOWED_LINKS);
}

static int copy_tree(struct tree *inner, struct df_err *err)
{
    if (check_chain(inner, err) < 0 ||
        df_ignore_read(&inner->c->ignore, inner->root, inner->at, err) < 0 ||
        make_directory(inner->c, inner->at, err) < 0)
        return -1;
    return df_tree_walk_at(inner->root, copy_visitor, inner, err);
}

/* Copies what the link leads to. It is opened once: what is checked is what is copied. */
static int follow_link(struct tree *t, const struct df_tree_entry *e, const char *path,
                       struct df_err *err)
{
    struct copying *c = t->c;
    DF_CLOSE int fd = openat(e->dir, e->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct tree inner = {.c = c, .root = fd, .at = path, .outer = t};
    if (fd < 0 || fstat(fd, &inner.st) < 0) {
        say_left_out(c, path, "a link to what is not there or cannot be read");
        return 0;
    }
    const char *fault = fault_of_target(c, e, path, fd, &inner.st);
    if (fault) {
        say_left_out(c, path, fault);
        return 0;
    }
    if (check_hidden(c, fd, path, err) < 0)
        return -1;
    return S_ISDIR(inner.st.st_mode) ? copy_tree(&inner, err)
                                     : copy_open_file(c, fd, inner.st.st_mode, path, err);
}

static int copy_or_follow(struct tree *t, const struct df_tree_entry *e, const char *path,
                          struct df_err *err)
{
    struct df_err why = {0};
    if (!t->c->f->spec->follows_links || df_tree_link_stays(t->root, e->path, &why) == 0)
        return copy_link(t->c, e, path, err);
    return df_streq(why.reason, "SourceRefused") ? follow_link(t, e, path, err)
                                                 : df_err_pass(err, &why);
}

/* ---- all of it ---- */

static int copy_entry(struct tree *t, const struct df_tree_entry *e, const char *path,
                      struct df_err *err)
{
    switch (e->st->st_mode & S_IFMT) {
    case S_IFDIR:
        return copy_directory(t, e, path, err);
    case S_IFREG:
        return copy_file(t->c, e, path, err);
    case S_IFLNK:
        return copy_or_follow(t, e, path, err);
    default:
        return df_source_refuse(
            err, "%s is a device, fifo or socket: remove it, or name it in " DF_IGNORE_FILE, path);
    }
}

static enum df_tree_visit copy_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct tree *t = arg;
    DF_FREE char *path = df_strf("%s%s%s", t->at, *t->at ? "/" : "", e->path);
    if (!path) {
        (void)df_fail_oom(err);
        return DF_TREE_FAIL;
    }
    bool is_directory = S_ISDIR(e->st->st_mode);
    if (is_left_out(e) || df_ignore_of(&t->c->ignore, path, is_directory) == DF_IGNORE_LEFT_OUT)
        return DF_TREE_SKIP;
    if (++t->c->entries > DF_LIMIT_TREE_ENTRIES) {
        (void)df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused", "more than %d entries",
                             DF_LIMIT_TREE_ENTRIES);
        return DF_TREE_FAIL;
    }
    return copy_entry(t, e, path, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
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

static int copy_source(struct copying *c, int root, struct df_err *err)
{
    struct tree t = {.c = c, .root = root, .at = ""};
    if (fstat(root, &t.st) < 0)
        return df_fail_errno(err, errno, "look at it");
    int failed = df_ignore_add(&c->ignore, "", DF_IGNORE_DEFAULTS, err) < 0 ||
                 df_ignore_read(&c->ignore, root, "", err) < 0 ||
                 df_tree_walk_at(root, copy_visitor, &t, err) < 0;
    df_ignore_free(&c->ignore);
    return failed ? -1 : 0;
}

int df_fetch_directory(const struct df_fetch *f, struct df_err *err)
{
    struct copying c = {.f = f,
                        .left = (int64_t)DF_LIMIT_ARCHIVE_BYTES,
                        .to = open(f->checkout, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    DF_CLOSE int to = c.to;
    DF_CLOSE int root = -1;
    if (to < 0 || fstat(to, &c.to_st) < 0)
        return df_fail_errno(err, errno, "open directory %s", f->checkout);
    if (open_root(f, &root, err) < 0)
        return -1;
    df_fetch_note(f, "copying %s", f->spec->path);
    return copy_source(&c, root, err) < 0 ? df_err_wrap(err, "copy %s", f->spec->path) : 0;
}
