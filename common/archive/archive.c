/*
 * Unpacks entry by entry; symbolic links are made last, and verified once all of them exist. Read
 * df_archive_unpack() first; df_archive_unpack_one() at the end is for tool zips.
 */
#include "common/archive/archive.h"

#include <errno.h>
#include <fcntl.h>

#include "common/archive/names.h"
#include "common/archive/reader.h"
#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/strs.h"

struct unpacking {
    struct df_archive_reader *reader;
    int root;
    struct df_names names;
    struct df_strs links; /* path, target, path, target: created last */
};

static void free_unpacking(struct unpacking *u)
{
    df_names_free(&u->names);
    df_strs_free(&u->links);
}

/* Opens the parent directory of path, creating missing ones; *ret_name is its last component.
 * Follows no links; none exists yet. */
static int open_parent(int root, const char *path, int *ret_fd, const char **ret_name,
                       struct df_err *err)
{
    DF_CLOSE int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        char name[256];
        (void)snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
        if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
            return df_fail_errno(err, errno, "create directory %s", name);
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int saved = errno;
        (void)close(fd);
        fd = next;
        errno = saved;
    }
    if (fd < 0)
        return df_fail_errno(err, errno, "open the directory of %s", path);
    *ret_fd = DF_TAKE_FD(fd);
    *ret_name = path;
    return 0;
}

static int make_directory(struct unpacking *u, const char *path, struct df_err *err)
{
    DF_CLOSE int dir = -1;
    const char *name = path;
    if (open_parent(u->root, path, &dir, &name, err) < 0)
        return -1;
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
        return df_fail_errno(err, errno, "create directory %s", path);
    return 0;
}

static int make_file(struct unpacking *u, const char *path, struct archive_entry *e,
                     struct df_err *err)
{
    DF_CLOSE int dir = -1;
    const char *name = path;
    if (open_parent(u->root, path, &dir, &name, err) < 0)
        return -1;
    mode_t mode = archive_entry_perm(e) & S_IXUSR ? 0755 : 0644;
    DF_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (df_archive_copy(u->reader, e, fd, err) < 0)
        return err && err->reason[0] ? -1 : df_err_wrap(err, "unpack %s", path);
    return 0;
}

static int remember_link(struct unpacking *u, const char *path, struct archive_entry *e,
                         struct df_err *err)
{
    const char *target = archive_entry_symlink(e);
    if (!target || !*target || *target == '/')
        return df_archive_refuse(err, "the symbolic link \"%s\" leads out of the archive", path);
    (void)df_strs_add(&u->links, path);
    (void)df_strs_add(&u->links, target);
    return df_strs_check(&u->links, err);
}

static int make_link(struct unpacking *u, const char *path, const char *target, struct df_err *err)
{
    DF_CLOSE int dir = -1;
    const char *name = path;
    if (open_parent(u->root, path, &dir, &name, err) < 0)
        return -1;
    if (symlinkat(target, dir, name) < 0)
        return df_fail_errno(err, errno, "create symbolic link %s", path);
    return 0;
}

static int unpack_entry(struct unpacking *u, struct archive_entry *e, struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (df_name_clean(archive_entry_pathname(e), &path, err) < 0)
        return -1;
    mode_t type = archive_entry_filetype(e);
    if (!*path) /* "./" */
        return type == AE_IFDIR ? 0 : df_archive_refuse(err, "an entry has no name");
    enum df_name_kind kind = type == AE_IFDIR   ? DF_NAME_DIRECTORY
                             : type == AE_IFLNK ? DF_NAME_LINK
                                                : DF_NAME_FILE;
    if (df_names_add(&u->names, path, kind, err) < 0)
        return -1;
    switch (kind) {
    case DF_NAME_DIRECTORY:
        return make_directory(u, path, err);
    case DF_NAME_LINK:
        return remember_link(u, path, e, err);
    case DF_NAME_FILE:
    default:
        return make_file(u, path, e, err);
    }
}

static int unpack_entries(struct unpacking *u, struct df_err *err)
{
    for (;;) {
        struct archive_entry *e = NULL;
        if (df_archive_next(u->reader, &e, err) < 0)
            return -1;
        if (!e)
            break;
        if (unpack_entry(u, e, err) < 0)
            return -1;
    }
    if (!u->names.tree)
        return df_archive_refuse(err, "it is empty");
    for (size_t i = 0; i < u->links.len; i += 2)
        if (make_link(u, u->links.items[i], u->links.items[i + 1], err) < 0)
            return -1;
    return 0;
}

/* What desktops put beside the folder that somebody packed. */
static bool is_companion(const char *name)
{
    static const char *const names[] = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_streq(name, names[i]))
            return true;
    return df_starts_with(name, "._");
}

/* Finds the only top directory, if there is one. */
struct top {
    char name[256];
    int count;
};

static enum df_tree_visit top_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)err;
    struct top *t = arg;
    if (is_companion(e->name))
        return DF_TREE_SKIP;
    t->count += S_ISDIR(e->st->st_mode)
                    ? 1
                    : 2; /* any other entry means that there is no single top directory */
    (void)snprintf(t->name, sizeof(t->name), "%s", e->name);
    return DF_TREE_SKIP;
}

struct lifting {
    int from, to;
};

static enum df_tree_visit lift_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    const struct lifting *l = arg;
    if (renameat(l->from, e->name, l->to, e->name) == 0)
        return DF_TREE_SKIP;
    (void)df_fail_errno(err, errno, "move %s up", e->name);
    return DF_TREE_FAIL;
}

static int lift_top(int root, const char *directory, struct df_err *err)
{
    struct top top = {0};
    if (df_tree_walk(directory, top_visitor, &top, err) < 0)
        return -1;
    if (top.count != 1)
        return 0;
    /* Rename it first: it may contain an entry of its own name. */
    static const char aside[] = ".dayfly-top-directory";
    if (renameat(root, top.name, root, aside) < 0)
        return df_fail_errno(err, errno, "move %s aside", top.name);
    DF_FREE char *path = df_fs_join(directory, aside);
    DF_CLOSE int from = openat(root, aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!path || from < 0)
        return path ? df_fail_errno(err, errno, "open %s", top.name) : df_fail_oom(err);
    struct lifting l = {from, root};
    if (df_tree_walk(path, lift_visitor, &l, err) < 0)
        return -1;
    return unlinkat(root, aside, AT_REMOVEDIR) < 0 ? df_fail_errno(err, errno, "remove %s", path)
                                                   : 0;
}

static enum df_tree_visit link_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    const int *root = arg;
    bool bad = S_ISLNK(e->st->st_mode) && df_tree_link_stays(*root, e->path, err) < 0;
    return bad ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

static int unpack_into(struct df_archive_reader *r, int root, const char *directory, bool strip_top,
                       struct df_err *err)
{
    DF_CLEANUP(free_unpacking) struct unpacking u = {.reader = r, .root = root};
    if (unpack_entries(&u, err) < 0 || (strip_top && lift_top(root, directory, err) < 0))
        return -1;
    /* Verify links once all exist: one may lead through another. */
    return u.links.len ? df_tree_walk(directory, link_visitor, &root, err) : 0;
}

int df_archive_unpack(int fd, const char *directory, bool strip_top,
                      const struct df_archive_limits *limits, struct df_err *err)
{
    DF_CLOSE int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return df_fail_errno(err, errno, "open directory %s", directory);
    DF_FREE struct df_archive_reader *r = malloc(sizeof(*r));
    if (!r)
        return df_fail_oom(err);
    int result = df_archive_open(r, fd, limits, err);
    if (result == 0)
        result = unpack_into(r, root, directory, strip_top, err);
    df_archive_close(r);
    if (result < 0 && df_tree_empty(directory, NULL) < 0)
        return df_err_wrap(err, "%s could not be emptied again", directory);
    return result;
}

/* Advances to the regular file of this name. */
static int find_file(struct df_archive_reader *r, const char *name, struct archive_entry **ret,
                     struct df_err *err)
{
    for (;;) {
        struct archive_entry *e = NULL;
        if (df_archive_next(r, &e, err) < 0)
            return -1;
        if (!e)
            return df_fail(err, DF_ERR_NOT_FOUND, "the archive holds no file \"%s\"", name);
        DF_FREE char *path = NULL;
        if (df_name_clean(archive_entry_pathname(e), &path, err) < 0)
            return -1;
        if (archive_entry_filetype(e) == AE_IFREG && df_streq(path, name)) {
            *ret = e;
            return 0;
        }
    }
}

static int copy_one(struct df_archive_reader *r, const char *name, const char *path,
                    struct df_err *err)
{
    struct archive_entry *e = NULL;
    if (find_file(r, name, &e, err) < 0)
        return -1;
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (df_archive_copy(r, e, fd, err) < 0) {
        (void)unlink(path);
        return df_err_wrap(err, "unpack %s", name);
    }
    return 0;
}

int df_archive_unpack_one(int fd, const char *name, const char *path, int64_t max_bytes,
                          struct df_err *err)
{
    const struct df_archive_limits limits = {max_bytes, DF_LIMIT_ARCHIVE_ENTRIES};
    DF_FREE struct df_archive_reader *r = malloc(sizeof(*r));
    if (!r)
        return df_fail_oom(err);
    int result = df_archive_open(r, fd, &limits, err);
    if (result == 0)
        result = copy_one(r, name, path, err);
    df_archive_close(r);
    return result;
}
