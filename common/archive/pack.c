#include "common/archive/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"

struct packing {
    struct archive *a;
    struct archive_entry *entry;
    struct df_archive_limits left;
};

static void free_packing(struct packing *p)
{
    archive_entry_free(p->entry);
    (void)archive_write_free(p->a); /* its end was written by archive_write_close() */
}

static int fail_pack(const struct packing *p, const char *path, struct df_err *err)
{
    const char *why = archive_error_string(p->a);
    return df_fail(err, DF_ERR_SYSTEM, "pack %s: %s", path, why ? why : "unknown error");
}

static int pack_content(struct packing *p, const struct df_tree_entry *e, int from,
                        struct df_err *err)
{
    char bytes[65536];
    int64_t left = e->st->st_size;
    while (left > 0) {
        ssize_t n = read(from, bytes, left < (int64_t)sizeof(bytes) ? (size_t)left : sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? df_fail_errno(err, errno, "read %s", e->path)
                         : df_fail(err, DF_ERR_RETRY, "%s changes while it is read", e->path);
        if (archive_write_data(p->a, bytes, (size_t)n) != n)
            return fail_pack(p, e->path, err);
        left -= n;
    }
    return 0;
}

static int begin_entry(struct packing *p, const struct df_tree_entry *e, mode_t type, mode_t mode,
                       struct df_err *err)
{
    (void)archive_entry_clear(p->entry);
    archive_entry_set_pathname(p->entry, e->path);
    archive_entry_set_filetype(p->entry, type);
    archive_entry_set_perm(p->entry, mode);
    archive_entry_set_size(p->entry, type == AE_IFREG ? e->st->st_size : 0);
    p->left.max_bytes -= type == AE_IFREG ? e->st->st_size : 0;
    if (--p->left.max_entries < 0 || p->left.max_bytes < 0)
        return df_fail(err, DF_ERR_LIMIT, "more files or bytes than may be packed");
    return 0;
}

static int pack_file(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    DF_CLOSE int from = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return df_fail_errno(err, errno, "open %s", e->path);
    if (begin_entry(p, e, AE_IFREG, e->st->st_mode & S_IXUSR ? 0755 : 0644, err) < 0)
        return -1;
    if (archive_write_header(p->a, p->entry) != ARCHIVE_OK)
        return fail_pack(p, e->path, err);
    return pack_content(p, e, from, err);
}

static int pack_link(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    if (n < 0)
        return df_fail_errno(err, errno, "read the symbolic link %s", e->path);
    target[n] = '\0';
    if (begin_entry(p, e, AE_IFLNK, 0777, err) < 0)
        return -1;
    archive_entry_set_symlink(p->entry, target);
    return archive_write_header(p->a, p->entry) == ARCHIVE_OK ? 0 : fail_pack(p, e->path, err);
}

static int pack_directory(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    if (begin_entry(p, e, AE_IFDIR, 0755, err) < 0)
        return -1;
    return archive_write_header(p->a, p->entry) == ARCHIVE_OK ? 0 : fail_pack(p, e->path, err);
}

static int pack_entry(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    switch (e->st->st_mode & S_IFMT) {
    case S_IFDIR:
        return pack_directory(p, e, err);
    case S_IFREG:
        return pack_file(p, e, err);
    case S_IFLNK:
        return pack_link(p, e, err);
    default:
        return df_fail(err, DF_ERR_USER, "%s is a device, fifo or socket", e->path);
    }
}

static enum df_tree_visit pack_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    if (df_streq(e->name, ".git"))
        return DF_TREE_SKIP;
    return pack_entry(arg, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

int df_archive_pack(const char *directory, int fd, const struct df_archive_limits *limits,
                    struct df_err *err)
{
    DF_CLEANUP(free_packing)
    struct packing p = {.a = archive_write_new(), .entry = archive_entry_new(), .left = *limits};
    if (!p.a || !p.entry)
        return df_fail_oom(err);
    if (archive_write_set_format_pax_restricted(p.a) != ARCHIVE_OK ||
        archive_write_open_fd(p.a, fd) != ARCHIVE_OK)
        return fail_pack(&p, directory, err);
    if (df_tree_walk(directory, pack_visitor, &p, err) < 0)
        return -1;
    return archive_write_close(p.a) == ARCHIVE_OK ? 0 : fail_pack(&p, directory, err);
}
