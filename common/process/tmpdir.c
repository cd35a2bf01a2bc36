#include "common/process/tmpdir.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/fs.h"
#include "common/base/strs.h"
#include "common/crypto/crypto.h"

#define BELOW "/plugin-dir1234567890/plugin1234567890"

static bool has_room_for_sockets(const char *dir)
{
    return strlen(dir) + sizeof(BELOW) <= sizeof(((struct sockaddr_un *)0)->sun_path);
}

/* One directory for all of this user, so that a step's wall can hide those of the others. */
char *df_tmpdir_shared(void)
{
    return df_strf("/tmp/dayfly-%u", (unsigned)geteuid());
}

/* Anybody may create it in /tmp: it must be ours. */
static int make_shared(struct df_err *err)
{
    struct stat st;
    DF_FREE char *path = df_tmpdir_shared();
    if (!path)
        return df_fail_oom(err);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return df_fail_errno(err, errno, "create directory %s", path);
    if (lstat(path, &st) < 0)
        return df_fail_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return df_fail(err, DF_ERR_SYSTEM,
                       "%s is not a directory of this user alone: remove it, or use a shorter "
                       "dataDirectory",
                       path);
    return 0;
}

int df_tmpdir_path(const char *work_dir, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(work_dir, "tmp");
    if (path && !has_room_for_sockets(path)) {
        char hash[DF_SHA256_HEX];
        if (df_sha256_hex(work_dir, strlen(work_dir), hash, err) < 0)
            return -1;
        DF_FREE char *shared = df_tmpdir_shared();
        free(path);
        path = shared ? df_strf("%s/%.16s", shared, hash) : NULL;
    }
    if (!path)
        return df_fail_oom(err);
    *ret = DF_TAKE(path);
    return 0;
}

int df_tmpdir_make(const char *work_dir, char **ret, struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (df_tmpdir_path(work_dir, &path, err) < 0)
        return -1;
    if (df_fs_remove_tree(path, err) < 0)
        return df_err_wrap(err, "empty %s", path);
    if (!df_starts_with(path, work_dir) && make_shared(err) < 0)
        return -1;
    if (mkdir(path, 0700) < 0)
        return df_fail_errno(err, errno, "create directory %s", path);
    *ret = DF_TAKE(path);
    return 0;
}

int df_tmpdir_remove(const char *work_dir, struct df_err *err)
{
    DF_FREE char *path = NULL;
    return df_tmpdir_path(work_dir, &path, err) < 0 ? -1 : df_fs_remove_tree(path, err);
}
