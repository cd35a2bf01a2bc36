/*
 * df_tree_walk() first; then df_tree_link_stays(), which resolves a link component by component and
 * never asks the kernel to follow one.
 */
#include "common/archive/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/strs.h"

struct walk {
    df_tree_visitor visit;
    void *arg;
    struct df_buf path; /* of the current entry */
    size_t entries;
};

static void cleanup_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted. dir_fd stays open. */
static int read_names(int dir_fd, struct df_strs *names, struct df_err *err)
{
    int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DF_CLEANUP(cleanup_dir) DIR *d = own < 0 ? NULL : fdopendir(own);
    if (!d) {
        int saved = errno;
        if (own >= 0)
            (void)close(own);
        return df_fail_errno(err, saved, "read directory");
    }
    errno = 0;
    for (struct dirent *e; (e = readdir(d)); errno = 0) {
        if (df_streq(e->d_name, ".") || df_streq(e->d_name, ".."))
            continue;
        (void)df_strs_add(names, e->d_name);
        if (names->len > DF_LIMIT_TREE_ENTRIES)
            return df_fail(err, DF_ERR_LIMIT, "more than %d entries", DF_LIMIT_TREE_ENTRIES);
    }
    if (errno)
        return df_fail_errno(err, errno, "read directory");
    if (names->len)
        qsort(names->items, names->len, sizeof(*names->items), by_bytes);
    return df_strs_check(names, err);
}

static int walk_dir(struct walk *w, int dir, int depth, struct df_err *err);

static int walk_down(struct walk *w, const struct df_tree_entry *e, int depth, struct df_err *err)
{
    DF_CLOSE int fd = openat(e->dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open directory %s", e->path);
    return walk_dir(w, fd, depth + 1, err);
}

static int walk_entry(struct walk *w, int dir, const char *name, int depth, struct df_err *err)
{
    if (++w->entries > DF_LIMIT_TREE_ENTRIES)
        return df_fail(err, DF_ERR_LIMIT, "more than %d entries", DF_LIMIT_TREE_ENTRIES);
    struct stat st;
    const struct df_tree_entry e = {
        .path = df_buf_str(&w->path), .name = name, .dir = dir, .st = &st};
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return df_fail_errno(err, errno, "look at %s", e.path);
    enum df_tree_visit said = w->visit(w->arg, &e, err);
    if (said == DF_TREE_GO_ON && S_ISDIR(st.st_mode))
        return walk_down(w, &e, depth, err);
    return said == DF_TREE_FAIL ? -1 : 0;
}

static int walk_dir(struct walk *w, int dir, int depth, struct df_err *err)
{
    if (depth > DF_LIMIT_TREE_DEPTH)
        return df_fail(err, DF_ERR_LIMIT, "directories are nested deeper than %d",
                       DF_LIMIT_TREE_DEPTH);
    DF_STRS struct df_strs names = {0};
    if (read_names(dir, &names, err) < 0)
        return -1;
    size_t base = w->path.len;
    for (size_t i = 0; i < names.len; i++) {
        (void)df_buf_addf(&w->path, "%s%s", base ? "/" : "", names.items[i]);
        if (df_buf_check(&w->path, err) < 0 || walk_entry(w, dir, names.items[i], depth, err) < 0)
            return -1;
        w->path.len = base;
        w->path.data[base] = '\0';
    }
    return 0;
}

int df_tree_walk_at(int directory, df_tree_visitor visit, void *arg, struct df_err *err)
{
    struct walk w = {
        .visit = visit, .arg = arg, .path = DF_BUF_INIT(256 * (DF_LIMIT_TREE_DEPTH + 1))};
    int result = walk_dir(&w, directory, 0, err);
    df_buf_free(&w.path);
    return result;
}

int df_tree_walk(const char *directory, df_tree_visitor visit, void *arg, struct df_err *err)
{
    DF_CLOSE int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return df_fail_errno(err, errno, "open directory %s", directory);
    return df_tree_walk_at(root, visit, arg, err);
}

/* Resolution of a link: `at` is the path so far, without links and ".."; `rest` is not resolved
 * yet. */
struct resolver {
    int root;
    struct df_buf at, rest;
    int links;
};

enum { MAX_LINKS = 40, MAX_RESOLVED = 16384, LINK_MAX_LEN = 4096 };

static int fail_leaves(const char *path, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                          "the symbolic link \"%s\" leads out of the source tree", path);
}

static void go_up(struct resolver *r)
{
    const char *slash = strrchr(df_buf_str(&r->at), '/');
    r->at.len = slash ? (size_t)(slash - r->at.data) : 0;
    r->at.data[r->at.len] = '\0';
}

/* Reads the link at r->at into target. False: it is not a link. */
static bool read_link(const struct resolver *r, char target[LINK_MAX_LEN])
{
    ssize_t n = readlinkat(r->root, df_buf_str(&r->at), target, LINK_MAX_LEN - 1);
    target[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

/* Removes the first component of rest. */
static int next_component(struct resolver *r, char name[256], const char *path, struct df_err *err)
{
    const char *rest = df_buf_str(&r->rest);
    size_t n = strcspn(rest, "/");
    if (n > 255)
        return fail_leaves(path, err);
    memcpy(name, rest, n);
    name[n] = '\0';
    df_buf_consume(&r->rest, n + strspn(rest + n, "/"));
    return 0;
}

static int resolve_component(struct resolver *r, const char *path, struct df_err *err)
{
    char name[256] = "", target[LINK_MAX_LEN];
    if (next_component(r, name, path, err) < 0)
        return -1;
    if (!*name || df_streq(name, "."))
        return 0;
    if (df_streq(name, "..")) {
        if (!r->at.len)
            return fail_leaves(path, err);
        go_up(r);
        return 0;
    }
    if (df_buf_addf(&r->at, "%s%s", r->at.len ? "/" : "", name) < 0)
        return df_buf_check(&r->at, err);
    if (!read_link(r, target))
        return 0;
    if (*target == '/' || ++r->links > MAX_LINKS)
        return fail_leaves(path, err);
    go_up(r);
    DF_FREE char *longer = df_strf("%s/%s", target, df_buf_str(&r->rest));
    df_buf_clear(&r->rest);
    if (!longer)
        return df_fail_oom(err);
    (void)df_buf_adds(&r->rest, longer);
    return df_buf_check(&r->rest, err);
}

int df_tree_link_stays(int root, const char *path, struct df_err *err)
{
    struct resolver r = {
        .root = root, .at = DF_BUF_INIT(MAX_RESOLVED), .rest = DF_BUF_INIT(MAX_RESOLVED)};
    (void)df_buf_adds(&r.rest, path);
    int result = df_buf_check(&r.rest, err);
    while (result == 0 && r.rest.len)
        result = resolve_component(&r, path, err);
    df_buf_free(&r.at);
    df_buf_free(&r.rest);
    return result;
}

static enum df_tree_visit list_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)err;
    char *out = arg;
    size_t used = strlen(out);
    if (!df_streq(e->name, ".git"))
        (void)snprintf(out + used, DF_TREE_LISTING - used, "%s%s%s", used ? ", " : "", e->name,
                       S_ISDIR(e->st->st_mode) ? "/" : "");
    return DF_TREE_SKIP;
}

const char *df_tree_list(const char *directory, char out[DF_TREE_LISTING])
{
    out[0] = '\0';
    (void)!df_tree_walk(directory, list_visitor, out, NULL); /* what was seen so far is told */
    return out;
}

struct emptying {
    const char *directory;
};

static enum df_tree_visit remove_visitor(void *arg, const struct df_tree_entry *e,
                                         struct df_err *err)
{
    const struct emptying *m = arg;
    DF_FREE char *path = df_fs_join(m->directory, e->name);
    if (!path)
        (void)df_fail_oom(err);
    return path && df_fs_remove_tree(path, err) == 0 ? DF_TREE_SKIP : DF_TREE_FAIL;
}

int df_tree_empty(const char *directory, struct df_err *err)
{
    struct emptying m = {directory};
    return df_tree_walk(directory, remove_visitor, &m, err);
}
