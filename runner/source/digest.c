/*
 * The digest of a tree: SHA-256 over "dayfly-tree-1\n" and, for every entry in the order of
 * df_tree_walk(), "<kind> <size> <path>\0" and its content. kind is d (directory, size 0), f
 * (file), x (file that its owner may execute) or l (symbolic link, whose content is its target).
 * Owners, times and other permission bits do not count: they differ from machine to machine. `.git`
 * and `.terraform` are left out, unless all is asked for.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/buf.h"
#include "common/crypto/crypto.h"
#include "runner/source/source.h"
#include "runner/source/spec.h"

struct digesting {
    struct df_sha256_ctx *sha;
    struct df_listing *listing; /* or NULL */
    uint64_t hash;              /* of the present entry, for the listing */
};

static void digesting_free(struct digesting *d)
{
    df_sha256_free(d->sha);
}

static int update(struct digesting *d, const void *bytes, size_t n, struct df_err *err)
{
    if (d->listing)
        d->hash = df_hash(d->hash, bytes, n);
    return df_sha256_update(d->sha, bytes, n, err);
}

static int digest_header(struct digesting *d, char kind, int64_t size, const char *path,
                         struct df_err *err)
{
    char head[32];
    int n = snprintf(head, sizeof(head), "%c %lld ", kind, (long long)size);
    return update(d, head, (size_t)n, err) < 0 || update(d, path, strlen(path) + 1, err) < 0 ? -1
                                                                                             : 0;
}

static int add_file(struct digesting *d, const struct df_tree_entry *e, struct df_err *err)
{
    DF_CLOSE int fd = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", e->path);
    char kind = e->st->st_mode & S_IXUSR ? 'x' : 'f';
    if (digest_header(d, kind, e->st->st_size, e->path, err) < 0)
        return -1;
    char bytes[65536];
    int64_t left = e->st->st_size;
    for (;;) {
        ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return df_fail_errno(err, errno, "read %s", e->path);
        left -= n;
        if (left < 0 || (n == 0 && left))
            return df_fail(err, DF_ERR_RETRY, "%s changes while it is read", e->path);
        if (n == 0)
            return 0;
        if (update(d, bytes, (size_t)n, err) < 0)
            return -1;
    }
}

static int add_link(struct digesting *d, const struct df_tree_entry *e, struct df_err *err)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target));
    if (n < 0)
        return df_fail_errno(err, errno, "read the symbolic link %s", e->path);
    return digest_header(d, 'l', n, e->path, err) < 0 || update(d, target, (size_t)n, err) < 0 ? -1
                                                                                               : 0;
}

static int add_entry(struct digesting *d, const struct df_tree_entry *e, struct df_err *err)
{
    switch (e->st->st_mode & S_IFMT) {
    case S_IFDIR:
        return digest_header(d, 'd', 0, e->path, err);
    case S_IFREG:
        return add_file(d, e, err);
    case S_IFLNK:
        return add_link(d, e, err);
    default:
        return df_source_refuse(err, "%s is a device, fifo or socket", e->path);
    }
}

static enum df_tree_visit visit_all(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct digesting *d = arg;
    d->hash = DF_HASH_BEGIN;
    if (add_entry(d, e, err) < 0)
        return DF_TREE_FAIL;
    if (d->listing)
        df_listing_add(d->listing, d->hash, e->path);
    return DF_TREE_GO_ON;
}

static enum df_tree_visit visit_source(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    if (df_streq(e->name, ".git") || df_streq(e->name, ".terraform"))
        return DF_TREE_SKIP;
    return visit_all(arg, e, err);
}

static int digest_tree(const char *directory, df_tree_visitor visit, struct df_listing *listing,
                       char ret[65], struct df_err *err)
{
    static const char version[] = "dayfly-tree-1\n";
    DF_CLEANUP(digesting_free) struct digesting d = {.listing = listing};
    if (df_sha256_new(&d.sha, err) < 0 || update(&d, version, strlen(version), err) < 0 ||
        df_tree_walk(directory, visit, &d, err) < 0)
        return -1;
    return df_sha256_final_hex(d.sha, ret, err);
}

int df_tree_digest(const char *directory, char ret[65], struct df_err *err)
{
    return digest_tree(directory, visit_source, NULL, ret, err);
}

int df_tree_digest_listed(const char *directory, struct df_listing *listing, char ret[65],
                          struct df_err *err)
{
    return digest_tree(directory, visit_source, listing, ret, err);
}

int df_tree_digest_all(const char *directory, char ret[65], struct df_err *err)
{
    return digest_tree(directory, visit_all, NULL, ret, err);
}
