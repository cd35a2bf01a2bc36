/* Below cache and stage a package is <host>/<namespace>/<type>/<version>/<platform>. */
#include "runner/tofu/plugin_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/platform.h"
#include "common/providers/lockfile.h"
#include "runner/tofu/package.h"

#define LOCK ".dayfly.lock"
#define INCOMING ".stage-" /* copies that are not published yet, one directory a step */
enum { MAX_ENTRIES = 10000 };

/* ---- the cache ---- */

/* Without locks (some FUSE file systems) publication is still a rename; killed steps leave their
 * copies there. */
static int hold(int fd, const char *path, struct df_err *err)
{
    while (flock(fd, LOCK_EX) < 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENOLCK)
            return 0;
        if (errno != EINTR)
            return df_fail_errno(err, errno, "lock %s", path);
    }
    return 0;
}

static int lock_cache(const char *cache, int *ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(cache, LOCK);
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (hold(fd, path, err) < 0)
        return -1;
    *ret = DF_TAKE_FD(fd);
    return 0;
}

int df_plugin_stage_make_cache(const char *cache, struct df_err *err)
{
    struct df_err why = {0};
    if (df_str_empty(cache) || df_fs_mkdirs(cache, 0755, &why) == 0 || why.cls == DF_ERR_DENIED)
        return 0;
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "providers.pluginCacheDirectory");
}

/* ---- the stage ---- */

void df_plugin_stage_close(struct df_plugin_stage *s)
{
    if (s->directory)
        (void)!df_fs_remove_tree(s->directory, NULL);
    if (s->fd >= 0)
        (void)close(s->fd);
    free(s->directory);
    free(s->cache);
    *s = DF_PLUGIN_STAGE_NONE;
}

static int make_stage(struct df_plugin_stage *s, const char *parent, struct df_err *err)
{
    s->directory = df_fs_join(parent, "plugins");
    if (df_fs_renew_dir(s->directory, err) < 0)
        return -1;
    s->fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->fd < 0 ? df_fail_errno(err, errno, "open %s", s->directory) : 0;
}

/* A package of the cache that is not exactly what was locked is as good as none. */
static bool has_package(const char *package, const struct df_locked_provider *p)
{
    char h1[DF_PACKAGE_H1];
    bool is_recorded = false;
    if (df_package_recall(package, h1, &is_recorded, NULL) < 0 || !df_strs_has(&p->hashes, h1))
        return false;
    if (!is_recorded)
        df_package_record(package, h1);
    return true;
}

static int link_package(const struct df_plugin_stage *s, const struct df_locked_provider *p,
                        struct df_err *err)
{
    DF_FREE char *package = df_strf("%s/%s/%s/" DF_PLATFORM, s->cache, p->source, p->version);
    DF_FREE char *parent = df_strf("%s/%s/%s", s->directory, p->source, p->version);
    DF_FREE char *link = parent ? df_fs_join(parent, DF_PLATFORM) : NULL;
    if (!package || !link)
        return df_fail_oom(err);
    bool is_there = has_package(package, p);
    if (is_there && df_plugin_use(s->uses, package, &is_there, err) < 0)
        return -1;
    if (!is_there)
        return 0;
    if (df_fs_mkdirs(parent, 0755, err) < 0)
        return -1;
    return symlink(package, link) < 0 ? df_fail_errno(err, errno, "link %s", link) : 0;
}

/* A lock file that cannot be read is for the tool to explain: without links it downloads anew. */
static int link_locked(const struct df_plugin_stage *s, const char *module_dir, struct df_err *err)
{
    DF_LOCKED struct df_lockfile locked = {0};
    if (df_lockfile_read(module_dir, &locked, NULL) < 0)
        return 0;
    for (size_t i = 0; i < locked.len; i++)
        if (link_package(s, &locked.providers[i], err) < 0)
            return -1;
    return 0;
}

int df_plugin_stage_open(const struct df_plugin_cache *cache, const char *module_dir,
                         const char *private_dir, struct df_plugin_stage *ret, struct df_err *err)
{
    DF_PLUGIN_STAGE struct df_plugin_stage s = DF_PLUGIN_STAGE_NONE;
    s.uses = cache->uses;
    s.limit = cache->limit;
    s.cache = strdup(cache->directory);
    if (!s.cache)
        return df_fail_oom(err);
    if (make_stage(&s, private_dir, err) < 0 || link_locked(&s, module_dir, err) < 0)
        return df_err_wrap(err, "providers.pluginCacheDirectory");
    *ret = s;
    s = DF_PLUGIN_STAGE_NONE;
    return 0;
}

/* ---- publication: copies ---- */

struct publishing {
    const struct df_plugin_stage *stage;
    const char *module_dir;
    char *incoming; /* a directory in the cache for copies; NULL: none yet */
    int incoming_fd;
    bool is_read_only; /* the cache */
};

static void publishing_end(struct publishing *p)
{
    if (p->incoming)
        (void)!df_fs_remove_tree(p->incoming, NULL);
    if (p->incoming_fd >= 0)
        (void)close(p->incoming_fd);
    free(p->incoming);
}

/* The lock of a directory falls with its process. */
static bool is_abandoned(const char *directory)
{
    DF_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* With the lock of the cache: a directory that is being made is not locked yet. */
static void remove_abandoned(const char *cache)
{
    DIR *d = opendir(cache);
    for (int i = 0; d && i < MAX_ENTRIES; i++) {
        const struct dirent *e = readdir(d);
        if (!e)
            break;
        DF_FREE char *directory =
            df_starts_with(e->d_name, INCOMING) ? df_fs_join(cache, e->d_name) : NULL;
        if (directory && is_abandoned(directory))
            (void)!df_fs_remove_tree(directory, NULL);
    }
    if (d)
        (void)closedir(d);
}

static int make_incoming(struct publishing *p, struct df_err *err)
{
    DF_FREE char *directory = df_fs_join(p->stage->cache, INCOMING "XXXXXX");
    DF_CLOSE int lock = -1;
    if (df_check_alloc(directory, err) < 0 || lock_cache(p->stage->cache, &lock, err) < 0)
        return -1;
    remove_abandoned(p->stage->cache);
    if (!mkdtemp(directory))
        return df_fail_errno(err, errno, "create directory %s", directory);
    p->incoming = DF_TAKE(directory);
    p->incoming_fd = open(p->incoming, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->incoming_fd < 0)
        return df_fail_errno(err, errno, "open %s", p->incoming);
    return hold(p->incoming_fd, p->incoming, err);
}

/* False: the packages stay with the step. */
static int can_publish(struct publishing *p, bool *ret, struct df_err *err)
{
    struct df_err why = {0};
    if (!p->incoming && !p->is_read_only && make_incoming(p, &why) < 0) {
        if (why.cls != DF_ERR_DENIED && why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
        p->is_read_only = true; /* or it could not be made */
    }
    *ret = !p->is_read_only;
    return 0;
}

/* ---- publication: names in the cache ---- */

/* Puts the copy where something else is. What a step executes meanwhile stays open to it; the
 * damaged one goes with the copies. */
static int replace_package(const char *copy, const char *package, struct df_err *err)
{
    return renameat2(AT_FDCWD, copy, AT_FDCWD, package, RENAME_EXCHANGE) < 0
               ? df_fail_errno(err, errno, "exchange %s", package)
               : 0;
}

/* *ret: false if there is a whole package already that is another one. */
static int put_package(const char *copy, const char *h1, const char *package, bool *ret,
                       struct df_err *err)
{
    char there[DF_PACKAGE_H1];
    bool is_whole = false;
    *ret = true;
    if (rename(copy, package) == 0)
        return 0;
    /* A plugin cache that a tool itself wrote can have a link there. */
    if (errno == ENOTDIR)
        return unlink(package) < 0 || rename(copy, package) < 0
                   ? df_fail_errno(err, errno, "rename to %s", package)
                   : 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return df_fail_errno(err, errno, "rename to %s", package);
    if (df_package_recall(package, there, &is_whole, NULL) == 0) {
        *ret = !is_whole || df_streq(h1, there);
        if (is_whole || df_streq(h1, there))
            return 0;
    }
    return replace_package(copy, package, err);
}

static int place(const struct publishing *p, const char *copy, const char *package, bool *ret,
                 struct df_err *err)
{
    DF_CLOSE int lock = -1;
    DF_FREE char *parent = strndup(package, (size_t)(strrchr(package, '/') - package));
    char h1[DF_PACKAGE_H1];
    if (df_package_digest(copy, h1, err) < 0 || lock_cache(p->stage->cache, &lock, err) < 0 ||
        df_fs_mkdirs(parent, 0755, err) < 0 || put_package(copy, h1, package, ret, err) < 0)
        return -1;
    if (!*ret)
        return 0;
    df_package_record(package, h1);
    return df_plugin_use(p->stage->uses, package, ret, err) < 0 ? -1 : df_fs_sync_dir(parent, err);
}

/* *ret: whether the cache has this package now. */
static int publish_package(struct publishing *p, const struct df_tree_entry *e, const char *package,
                           bool *ret, struct df_err *err)
{
    if (can_publish(p, ret, err) < 0 || !*ret)
        return *ret ? -1 : 0;
    DF_FREE char *staged = df_strf("/proc/self/fd/%d/%s", e->dir, e->name);
    DF_FREE char *copy = df_fs_join(p->incoming, "package");
    if (df_check_alloc(staged, err) < 0 || df_fs_remove_tree(copy, err) < 0 ||
        df_package_copy(staged, copy, err) < 0)
        return -1;
    return place(p, copy, package, ret, err);
}

/* ---- publication: the module's links ---- */

/* A module may put links where .terraform and its folders were: none is followed. */
static int open_parent(const struct publishing *p, const char *name)
{
    DF_FREE char *path = df_strf("%s/.terraform/providers/%s", p->module_dir, name);
    if (!path)
        return -1;
    *strrchr(path, '/') = '\0';
    return df_fs_open_plain_dir(path);
}

/* Directs the link of the module to its package, or moves the staged one there. A package that the
 * tool copied stays. package: NULL for the staged one. */
static int settle_link(const struct publishing *p, const struct df_tree_entry *e,
                       const char *package, struct df_err *err)
{
    char old[PATH_MAX];
    DF_CLOSE int parent = open_parent(p, e->path);
    if (parent < 0 || readlinkat(parent, e->name, old, sizeof(old)) < 0)
        return 0;
    if (unlinkat(parent, e->name, 0) < 0 ||
        (package ? symlinkat(package, parent, e->name)
                 : renameat(e->dir, e->name, parent, e->name)) < 0)
        return df_fail_errno(err, errno, "link .terraform/providers/%s", e->path);
    return 0;
}

/* What a link of the stage leads to: the cache, or an unpacked mirror; it needs no copy. */
static char *linked_package(const struct df_tree_entry *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    return n < 0 ? NULL : strndup(target, (size_t)n);
}

static int settle_package(struct publishing *p, const struct df_tree_entry *e, struct df_err *err)
{
    bool is_link = S_ISLNK(e->st->st_mode), is_there = true;
    DF_FREE char *package = is_link ? linked_package(e) : df_fs_join(p->stage->cache, e->path);
    if (df_check_alloc(package, err) < 0 ||
        (!is_link && publish_package(p, e, package, &is_there, err) < 0))
        return -1;
    return settle_link(p, e, is_there ? package : NULL, err);
}

static enum df_tree_visit visit(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct publishing *p = (struct publishing *)arg;
    int depth = 0;
    for (const char *c = e->path; *c; c++)
        depth += *c == '/';
    if (*e->name == '.') /* no provider; in the cache these names are ours */
        return DF_TREE_SKIP;
    if (depth < 4)
        return DF_TREE_GO_ON;
    /* Besides packages the tools leave locks there. */
    if (!df_streq(e->name, DF_PLATFORM))
        return DF_TREE_SKIP;
    return settle_package(p, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
}

/* A step does not fail because of what others left. */
static void make_room(const struct publishing *p)
{
    DF_CLOSE int lock = -1;
    if (p->stage->limit && p->incoming && lock_cache(p->stage->cache, &lock, NULL) == 0)
        (void)!df_plugin_room_make(p->stage->cache, p->stage->limit, p->incoming, NULL);
}

int df_plugin_stage_publish(const struct df_plugin_stage *s, const char *module_dir,
                            struct df_err *err)
{
    DF_CLEANUP(publishing_end)
    struct publishing p = {.stage = s, .module_dir = module_dir, .incoming_fd = -1};
    if (df_tree_walk_at(s->fd, visit, &p, err) < 0)
        return df_err_wrap(err, "providers.pluginCacheDirectory");
    make_room(&p);
    return 0;
}
