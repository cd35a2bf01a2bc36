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

int df_tmpdir_path(const char *work_dir, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(work_dir, "tmp");
    if (path && !has_room_for_sockets(path)) {
        char hash[DF_SHA256_HEX];
        if (df_sha256_hex(work_dir, strlen(work_dir), hash, err) < 0)
            return -1;
        free(path);
        path = df_strf("/tmp/dayfly-%.16s", hash);
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
    if (mkdir(path, 0700) < 0) /* anybody may create it in /tmp: EEXIST means that it is not ours */
        return df_fail_errno(err, errno, "create directory %s", path);
    *ret = DF_TAKE(path);
    return 0;
}

int df_tmpdir_remove(const char *work_dir, struct df_err *err)
{
    DF_FREE char *path = NULL;
    return df_tmpdir_path(work_dir, &path, err) < 0 ? -1 : df_fs_remove_tree(path, err);
}
