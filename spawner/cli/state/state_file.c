#include "spawner/cli/state/state_file.h"

#include <errno.h>
#include <fcntl.h>

int df_copy_create(const char *path, int *ret_fd, struct df_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return df_fail(err, DF_ERR_USER,
                       "%s: there is such a file already, and it is not overwritten: choose "
                       "another with --state-file; nothing was deleted",
                       path);
    if (fd < 0) {
        (void)df_fail_errno(err, errno, "create %s (nothing was deleted)", path);
        err->cls = DF_ERR_USER;
        return -1;
    }
    *ret_fd = fd;
    return 0;
}
