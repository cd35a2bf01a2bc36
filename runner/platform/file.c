#include "runner/platform/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"

int df_file_read(const char *path, struct df_buf *ret, struct df_err *err)
{
    struct stat st;
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s is not a regular file", path);
    return df_fs_read_fd(fd, ret, err) < 0 ? df_err_wrap(err, "%s", path) : 0;
}
