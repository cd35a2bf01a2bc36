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
#define STAGE ".stage-"
enum { MAX_ENTRIES = 10000 };

/* ---- locks ---- */

/* Without locks (some FUSE file systems) publication is still a rename; killed steps leave their
 * stages there. */
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

/* ---- stages ---- */

/* The lock of a stage falls with its process. */
static bool is_abandoned(const char *stage)
{
    DF_CLOSE int fd = open(stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* With the lock of the cache: a stage that is being made is not locked yet. */
static void remove_abandoned(const char *cache)
{
    DIR *d = opendir(cache);
    for (int i = 0; d && i < MAX_ENTRIES; i++) {
        const struct dirent *e = readdir(d);
        if (!e)
            break;
        DF_FREE char *stage =
            df_starts_with(e->d_name, STAGE) ? df_fs_join(cache, e->d_name) : NULL;
        if (stage && is_abandoned(stage))
            (void)!df_fs_remove_tree(stage, NULL);
    }
    if (d)
        (void)closedir(d);
}

static int make_stage(struct df_plugin_stage *s, const char *parent, struct df_err *err)
{
    DF_FREE char *directory = df_fs_join(parent, STAGE "XXXXXX");
    if (!directory)
        return df_fail_oom(err);
    if (!mkdtemp(directory))
        return df_fail_errno(err, errno, "create directory %s", directory);
    s->directory = DF_TAKE(directory);
    s->fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->fd < 0)
        return df_fail_errno(err, errno, "open %s", s->directory);
    return hold(s->fd, s->directory, err);
}

static int make_shared_stage(struct df_plugin_stage *s, struct df_err *err)
{
    DF_CLOSE int lock = -1;
    if (df_fs_mkdirs(s->cache, 0755, err) < 0 || lock_cache(s->cache, &lock, err) < 0)
        return -1;
    remove_abandoned(s->cache);
    return make_stage(s, s->cache, err);
}

/* Of a cache that is mounted read-only the step uses what is there. */
static int make_any_stage(struct df_plugin_stage *s, const char *private_dir, struct df_err *err)
{
    struct df_err why = {0};
    if (make_shared_stage(s, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_DENIED)
        return df_err_pass(err, &why);
    s->is_private = true;
    return make_stage(s, private_dir, err);
}

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

/* ---- links to what is there ---- */

/* A package of the cache that is not exactly what was locked is as good as none. */
static bool has_package(const char *package, const struct df_locked_provider *p)
{
    char h1[DF_PACKAGE_H1];
    return df_package_recall(package, h1, NULL) == 0 && df_strs_has(&p->hashes, h1);
}

static int link_package(const struct df_plugin_stage *s, const struct df_locked_provider *p,
                        struct df_err *err)
{
    DF_FREE char *package = df_strf("%s/%s/%s/" DF_PLATFORM, s->cache, p->source, p->version);
    DF_FREE char *parent = df_strf("%s/%s/%s", s->directory, p->source, p->version);
    DF_FREE char *link = parent ? df_fs_join(parent, DF_PLATFORM) : NULL;
    if (!package || !link)
        return df_fail_oom(err);
    if (!has_package(package, p))
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

int df_plugin_stage_open(const char *cache, const char *module_dir, const char *private_dir,
                         struct df_plugin_stage *ret, struct df_err *err)
{
    DF_PLUGIN_STAGE struct df_plugin_stage s = DF_PLUGIN_STAGE_NONE;
    s.cache = strdup(cache);
    if (!s.cache)
        return df_fail_oom(err);
    if (make_any_stage(&s, private_dir, err) < 0 || link_locked(&s, module_dir, err) < 0)
        return df_err_wrap(err, "providers.pluginCacheDirectory");
    *ret = s;
    s = DF_PLUGIN_STAGE_NONE;
    return 0;
}

/* ---- publication ---- */

struct publishing {
    const struct df_plugin_stage *stage;
    const char *module_dir;
};

/* Puts the staged package where the damaged one was. What a step executes meanwhile stays open to
 * it; the damaged one goes with the stage. */
static int replace_package(const char *staged, const char *package, struct df_err *err)
{
    return renameat2(AT_FDCWD, staged, AT_FDCWD, package, RENAME_EXCHANGE) < 0
               ? df_fail_errno(err, errno, "exchange %s", package)
               : 0;
}

static int put_package(const char *staged, const char *h1, const char *package, struct df_err *err)
{
    char there[DF_PACKAGE_H1];
    if (rename(staged, package) == 0)
        return 0;
    /* A plugin cache that a tool itself wrote can have a link there. */
    if (errno == ENOTDIR)
        return unlink(package) < 0 || rename(staged, package) < 0
                   ? df_fail_errno(err, errno, "rename to %s", package)
                   : 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return df_fail_errno(err, errno, "rename to %s", package);
    if (df_package_recall(package, there, NULL) == 0 && df_streq(h1, there))
        return 0;
    return replace_package(staged, package, err);
}

static int publish_package(const struct publishing *p, const char *staged, const char *package,
                           struct df_err *err)
{
    DF_CLOSE int lock = -1;
    DF_FREE char *parent = strndup(package, (size_t)(strrchr(package, '/') - package));
    char h1[DF_PACKAGE_H1];
    if (!parent)
        return df_fail_oom(err);
    if (df_package_digest(staged, h1, err) < 0 || df_package_sync(staged, err) < 0 ||
        lock_cache(p->stage->cache, &lock, err) < 0 || df_fs_mkdirs(parent, 0755, err) < 0 ||
        put_package(staged, h1, package, err) < 0)
        return -1;
    return df_fs_sync_dir(parent, err);
}

/* Directs the link of the module to its package, or puts a package there that nobody else gets. A
 * package that the tool copied stays. */
static int settle_link(const struct publishing *p, const char *name, const char *staged,
                       const char *package, struct df_err *err)
{
    char old[PATH_MAX];
    DF_FREE char *link = df_strf("%s/.terraform/providers/%s", p->module_dir, name);
    if (!link)
        return df_fail_oom(err);
    if (readlink(link, old, sizeof(old)) < 0)
        return 0;
    if (unlink(link) < 0 || (package ? symlink(package, link) : rename(staged, link)) < 0)
        return df_fail_errno(err, errno, "link %s", link);
    return 0;
}

/* What a link of the stage leads to: the cache, or an unpacked mirror; it needs no copy. */
static char *linked_package(const struct df_tree_entry *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof(target) - 1);
    return n < 0 ? NULL : strndup(target, (size_t)n);
}

static int settle_package(const struct publishing *p, const struct df_tree_entry *e,
                          struct df_err *err)
{
    const struct df_plugin_stage *s = p->stage;
    bool is_link = S_ISLNK(e->st->st_mode);
    DF_FREE char *staged = df_fs_join(s->directory, e->path);
    DF_FREE char *package = is_link ? linked_package(e) : df_fs_join(s->cache, e->path);
    if (!staged || !package)
        return df_fail_oom(err);
    if (!is_link && s->is_private)
        return settle_link(p, e->path, staged, NULL, err);
    if (!is_link && publish_package(p, staged, package, err) < 0)
        return -1;
    return settle_link(p, e->path, staged, package, err);
}

static enum df_tree_visit visit(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    const struct publishing *p = (const struct publishing *)arg;
    int depth = 0;
    for (const char *c = e->path; *c; c++)
        depth += *c == '/';
    if (depth < 4)
        return DF_TREE_GO_ON;
    /* Besides packages the tools leave locks there. */
    if (!df_streq(e->name, DF_PLATFORM))
        return DF_TREE_SKIP;
    return settle_package(p, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
}

int df_plugin_stage_publish(const struct df_plugin_stage *s, const char *module_dir,
                            struct df_err *err)
{
    struct publishing p = {.stage = s, .module_dir = module_dir};
    return df_tree_walk(s->directory, visit, &p, err) < 0
               ? df_err_wrap(err, "providers.pluginCacheDirectory")
               : 0;
}
