/*
 * Writes a tar by hand: libarchive's writers drag in libraries that its readers do not need. Blocks
 * of 512 bytes; a name or target of more than 100 bytes is an entry of its own before (GNU's 'L'
 * and 'K').
 */
#include "common/archive/pack.h"

#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"

enum { BLOCK = 512, NAME = 100, SUM_AT = 148 };

struct packing {
    int fd;
    struct df_archive_limits left;
};

/* ---- blocks ---- */

static int write_padded(const struct packing *p, const void *bytes, size_t n, struct df_err *err)
{
    static const char zeros[BLOCK];
    if (df_fs_write_all(p->fd, bytes, n, err) < 0)
        return -1;
    return n % BLOCK ? df_fs_write_all(p->fd, zeros, BLOCK - n % BLOCK, err) : 0;
}

static int write_header(const struct packing *p, char type, const char *name, const char *target,
                        int64_t size, unsigned mode, struct df_err *err)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    memcpy(h, name, strnlen(name, NAME));
    (void)snprintf(h + 100, 8, "%07o", mode);
    (void)snprintf(h + 108, 8, "%07o", 0);
    (void)snprintf(h + 116, 8, "%07o", 0);
    (void)snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    (void)snprintf(h + 136, 12, "%011o", 0);
    h[156] = type;
    memcpy(h + 157, target, strnlen(target, NAME));
    memcpy(h + 257, "ustar  ", 8);
    memset(h + SUM_AT, ' ', 8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + SUM_AT, 8, "%06o", sum);
    return df_fs_write_all(p->fd, h, sizeof(h), err);
}

/* Before the entry that it belongs to. */
static int write_long(const struct packing *p, char type, const char *text, struct df_err *err)
{
    size_t n = strlen(text);
    if (n <= NAME)
        return 0;
    return write_header(p, type, "././@LongLink", "", (int64_t)n + 1, 0, err) < 0
               ? -1
               : write_padded(p, text, n + 1, err);
}

static int begin_entry(struct packing *p, char type, const char *name, const char *target,
                       int64_t size, unsigned mode, struct df_err *err)
{
    p->left.max_bytes -= size;
    if (--p->left.max_entries < 0 || p->left.max_bytes < 0)
        return df_fail(err, DF_ERR_LIMIT, "more files or bytes than may be packed");
    if (write_long(p, 'L', name, err) < 0 || write_long(p, 'K', target, err) < 0)
        return -1;
    return write_header(p, type, name, target, size, mode, err);
}

/* ---- entries ---- */

static int pack_content(const struct packing *p, const struct df_tree_entry *e, int from,
                        struct df_err *err)
{
    enum { PIECE = 128 * BLOCK };
    DF_BUF struct df_buf piece = DF_BUF_INIT(PIECE);
    for (int64_t at = 0, size = e->st->st_size; at < size; at += PIECE) {
        int64_t end = size - at < PIECE ? size : at + PIECE;
        df_buf_clear(&piece);
        if (df_fs_read_at(from, at, end, &piece, err) < 0)
            return -1;
        if ((int64_t)piece.len != end - at)
            return df_fail(err, DF_ERR_RETRY, "%s changes while it is read", e->path);
        if (write_padded(p, df_buf_str(&piece), piece.len, err) < 0)
            return -1;
    }
    return 0;
}

static int pack_file(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    DF_CLOSE int from = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned mode = e->st->st_mode & S_IXUSR ? 0755 : 0644;
    if (from < 0)
        return df_fail_errno(err, errno, "open %s", e->path);
    return begin_entry(p, '0', e->path, "", e->st->st_size, mode, err) < 0
               ? -1
               : pack_content(p, e, from, err);
}

static int pack_link(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    if (n < 0)
        return df_fail_errno(err, errno, "read the symbolic link %s", e->path);
    target[n] = '\0';
    return begin_entry(p, '2', e->path, target, 0, 0777, err);
}

static int pack_entry(struct packing *p, const struct df_tree_entry *e, struct df_err *err)
{
    switch (e->st->st_mode & S_IFMT) {
    case S_IFDIR:
        return begin_entry(p, '5', e->path, "", 0, 0755, err);
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
    static const char end[2 * BLOCK];
    struct packing p = {fd, *limits};
    DF_CLOSE int root = df_fs_open_plain_dir(directory);
    if (root < 0)
        return df_fail_errno(err, errno, "open directory %s", directory);
    if (df_tree_walk_at(root, pack_visitor, &p, err) < 0)
        return -1;
    return df_fs_write_all(fd, end, sizeof(end), err);
}
