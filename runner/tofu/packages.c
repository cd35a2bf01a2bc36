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

static int link_locked(const char *module_dir, const char *installed, const cJSON *providers,
                       const struct df_locked_provider *p, struct df_err *err)
{
    const char *const places[] = {installed, df_json_str(providers, "pluginCacheDirectory"),
                                  df_json_str(providers, "filesystemMirror")};
    DF_FREE char *package = df_strf("%s/%s/" DF_PLATFORM, p->source, p->version);
    DF_FREE char *target = NULL;
    if (!package)
        return df_fail_oom(err);
    for (size_t i = 0; !target && i < DF_ARRAY_SIZE(places); i++)
        target = find_in(places[i], package);
    if (!target)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s %s is not in a cache or mirror here", p->source,
                       p->version);
    return check_package(target, p, err) < 0 ? -1 : link_package(module_dir, package, target, err);
}

int df_packages_link(const char *module_dir, const char *installed, const cJSON *providers,
                     int *ret_count, struct df_err *err)
{
    DF_LOCKED struct df_lockfile locked = {0};
    *ret_count = 0;
    if (df_lockfile_read(module_dir, &locked, err) < 0)
        return -1;
    for (size_t i = 0; i < locked.len; i++, ++*ret_count)
        if (link_locked(module_dir, installed, providers, &locked.providers[i], err) < 0)
            return -1;
    return 0;
}
