/* The digest of a package first; then the lock file, block by block; then the links. */
#include "runner/tofu/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/strs.h"
#include "common/crypto/crypto.h"

/* ---- the digest of a package ---- */

static enum df_tree_visit add_path(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct df_strs *paths = arg;
    if (S_ISDIR(e->st->st_mode))
        return DF_TREE_GO_ON;
    (void)df_strs_add(paths, e->path);
    return df_strs_check(paths, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A link to a file counts as that file, as it does for the tool. */
static int add_file_line(const char *directory, const char *name, struct df_buf *out,
                         struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    struct stat st;
    DF_FREE char *path = df_fs_join(directory, name);
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (!S_ISREG(st.st_mode) || st.st_size > (int64_t)DF_LIMIT_ARCHIVE_BYTES || strchr(name, '\n'))
        return df_fail(err, DF_ERR_CONFLICT, "%s is not a file of a provider package", path);
    if (df_sha256_file_hex(fd, hex, NULL, err) < 0)
        return -1;
    (void)df_buf_addf(out, "%s  %s\n", hex, name);
    return df_buf_check(out, err);
}

int df_package_digest(const char *directory, struct df_buf *out, struct df_err *err)
{
    DF_STRS struct df_strs paths = {0};
    DF_BUF struct df_buf lines = DF_BUF_INIT(DF_LIMIT_PACKAGE_LISTING);
    unsigned char digest[DF_SHA256_LEN];
    if (df_tree_walk(directory, add_path, &paths, err) < 0)
        return -1;
    if (paths.len)
        qsort(paths.items, paths.len, sizeof(*paths.items), by_bytes);
    for (size_t i = 0; i < paths.len; i++)
        if (add_file_line(directory, paths.items[i], &lines, err) < 0)
            return -1;
    if (df_sha256(df_buf_str(&lines), lines.len, digest, err) < 0)
        return -1;
    (void)df_buf_adds(out, "h1:");
    return df_base64_encode(digest, sizeof(digest), false, out, err);
}

/* ---- the lock file ---- */

/* One block `provider "<host>/<namespace>/<type>" {}`. Strings are borrowed from the text. */
struct locked {
    char address[DF_LIMIT_PACKAGE_NAME], version[64];
    const char *body; /* its lines, up to the brace that ends it */
    size_t n;
};

static int fail_lock(const char *what, struct df_err *err)
{
    return df_fail(err, DF_ERR_USER, ".terraform.lock.hcl: %s", what);
}

/* The text between the first two quotes after `from`, if it can be a part of a path: no name
 * begins with a dot, and none is empty. */
static bool take_quoted(const char *from, char *to, size_t size)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+:/";
    const char *text = strchr(from, '"'), *line_end = strchr(from, '\n');
    size_t n = text ? strspn(text + 1, good) : 0;
    if (!text || (line_end && text > line_end) || text[n + 1] != '"' || n == 0 || n >= size)
        return false;
    (void)snprintf(to, size, "%.*s", (int)n, text + 1);
    return *to != '/' && *to != '.' && !strstr(to, "//") && !strstr(to, "/.");
}

static bool has_two_slashes(const char *address)
{
    int n = 0;
    for (const char *p = address; *p; p++)
        n += *p == '/';
    return n == 2;
}

/* The block at or behind *at, which moves behind it. False: there is none any more. The tools write
 * the file, each block and attribute on a line of its own. */
static int next_locked(const char **at, struct locked *ret, bool *ret_more, struct df_err *err)
{
    static const char begin[] = "provider \"";
    const char *block = df_starts_with(*at, begin) ? *at : strstr(*at, "\nprovider \"");
    *ret_more = block != NULL;
    if (!block)
        return 0;
    block += *block == '\n';
    const char *body = strchr(block, '\n'), *end = body ? strstr(body, "\n}") : NULL;
    const char *version = body ? strstr(body, "\n  version") : NULL;
    if (!end || !version || version > end)
        return fail_lock("a provider has no version", err);
    if (!take_quoted(block, ret->address, sizeof(ret->address)) || !has_two_slashes(ret->address) ||
        !take_quoted(version + 1, ret->version, sizeof(ret->version)) || strchr(ret->version, '/'))
        return fail_lock("a provider has an unusual name or version", err);
    ret->body = body;
    ret->n = (size_t)(end - body);
    *at = end;
    return 0;
}

static bool names_digest(const struct locked *l, const char *digest)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", digest);
    return memmem(l->body, l->n, quoted, strlen(quoted)) != NULL;
}

/* ---- links ---- */

/* As Go calls this machine. */
static const char *architecture(void)
{
    static const struct {
        const char *machine, *go;
    } known[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
    struct utsname u;
    if (uname(&u) < 0)
        return "unknown";
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (df_streq(known[i].machine, u.machine))
            return known[i].go;
    return "unknown";
}

/* The package in one place, as an absolute path without links; NULL if it is not there. */
static char *find_in(const char *place, const char *package)
{
    DF_FREE char *path = df_str_empty(place) ? NULL : df_fs_join(place, package);
    return path ? realpath(path, NULL) : NULL;
}

static int link_package(const char *module_dir, const char *package, const char *target,
                        struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/.terraform/providers/%s", module_dir, package);
    if (!path)
        return df_fail_oom(err);
    char *last = strrchr(path, '/');
    *last = '\0';
    if (df_fs_mkdirs(path, 0755, err) < 0)
        return -1;
    *last = '/';
    return symlink(target, path) < 0 ? df_fail_errno(err, errno, "link %s", path) : 0;
}

static int link_locked(const char *module_dir, const cJSON *providers, const struct locked *l,
                       struct df_err *err)
{
    static const char *const places[] = {"pluginCacheDirectory", "filesystemMirror"};
    DF_FREE char *package = df_strf("%s/%s/linux_%s", l->address, l->version, architecture());
    DF_FREE char *target = NULL;
    DF_BUF struct df_buf digest = DF_BUF_INIT(DF_LIMIT_PACKAGE_NAME);
    if (!package)
        return df_fail_oom(err);
    for (size_t i = 0; !target && i < DF_ARRAY_SIZE(places); i++)
        target = find_in(df_json_str(providers, places[i]), package);
    if (!target)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s %s is not in a cache or mirror here", l->address,
                       l->version);
    if (df_package_digest(target, &digest, err) < 0)
        return -1;
    if (!names_digest(l, df_buf_str(&digest)))
        return df_fail(err, DF_ERR_CONFLICT,
                       "%s has the digest %s, which the lock file does not name", target,
                       df_buf_str(&digest));
    return link_package(module_dir, package, target, err);
}

int df_packages_link(const char *module_dir, const cJSON *providers, int *ret_count,
                     struct df_err *err)
{
    DF_FREE char *path = df_fs_join(module_dir, ".terraform.lock.hcl");
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_LOCK_FILE);
    struct locked l = {.body = NULL};
    bool more = true;
    *ret_count = 0;
    if (!path)
        return df_fail_oom(err);
    if (df_fs_read_plain(path, &text, err) < 0)
        return -1;
    for (const char *at = df_buf_str(&text);;) {
        if (next_locked(&at, &l, &more, err) < 0)
            return -1;
        if (!more)
            return 0;
        if (link_locked(module_dir, providers, &l, err) < 0)
            return -1;
        ++*ret_count;
    }
}
