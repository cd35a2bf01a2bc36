#include "runner/tofu/packages.h"

#include <errno.h>

#include "common/base/fs.h"
#include "common/base/platform.h"
#include "common/providers/lockfile.h"
#include "runner/tofu/package.h"

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

/* The digest is computed anew: who may write to a shared cache may write to its records, too. */
static int check_package(const char *package, const struct df_locked_provider *p,
                         struct df_err *err)
{
    char h1[DF_PACKAGE_H1];
    if (df_package_digest(package, h1, err) < 0)
        return -1;
    return df_strs_has(&p->hashes, h1)
               ? 0
               : df_fail(err, DF_ERR_CONFLICT,
                         "%s has the digest %s, which the lock file does not name", package, h1);
}

/* Of the cache it is used from now on. */
static int find_in_cache(const cJSON *providers, const char *package, struct df_plugin_uses *uses,
                         char **ret, struct df_err *err)
{
    const char *cache = df_json_str(providers, "pluginCacheDirectory");
    DF_FREE char *path = df_str_empty(cache) ? NULL : df_fs_join(cache, package);
    bool is_there = false;
    if (path && df_plugin_use(uses, path, &is_there, err) < 0)
        return -1;
    *ret = is_there ? find_in(cache, package) : NULL;
    return 0;
}

static int link_locked(const char *module_dir, const char *installed, const cJSON *providers,
                       struct df_plugin_uses *uses, const struct df_locked_provider *p,
                       struct df_err *err)
{
    DF_FREE char *package = df_strf("%s/%s/" DF_PLATFORM, p->source, p->version);
    DF_FREE char *target = NULL;
    if (!package)
        return df_fail_oom(err);
    target = find_in(installed, package);
    if (!target && find_in_cache(providers, package, uses, &target, err) < 0)
        return -1;
    if (!target)
        target = find_in(df_json_str(providers, "filesystemMirror"), package);
    if (!target)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s %s is not in a cache or mirror here", p->source,
                       p->version);
    return check_package(target, p, err) < 0 ? -1 : link_package(module_dir, package, target, err);
}

int df_packages_link(const char *module_dir, const char *installed, const cJSON *providers,
                     struct df_plugin_uses *uses, int *ret_count, struct df_err *err)
{
    DF_LOCKED struct df_lockfile locked = {0};
    *ret_count = 0;
    if (df_lockfile_read(module_dir, &locked, err) < 0)
        return -1;
    for (size_t i = 0; i < locked.len; i++, ++*ret_count)
        if (link_locked(module_dir, installed, providers, uses, &locked.providers[i], err) < 0)
            return -1;
    return 0;
}
