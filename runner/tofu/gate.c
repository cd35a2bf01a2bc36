#include "runner/tofu/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

int df_gate_make(const char *path, struct df_gate *ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_fs_open_plain(path, O_RDWR | O_CREAT | O_EXCL, 0600, &fd, err) < 0)
        return -1;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return df_fail_errno(err, errno, "lease %s", path);
    ret->fd = DF_TAKE_FD(fd);
    return 0;
}

int df_gate_open(struct df_gate *g, const char *content_path, struct df_err *err)
{
    DF_CLOSE int from = -1;
    if (df_fs_open_plain(content_path, O_RDONLY, 0, &from, err) < 0)
        return -1;
    ssize_t n;
    do {
        n = sendfile(g->fd, from, NULL, DF_MIB);
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return df_fail_errno(err, errno, "copy %s", content_path);
    df_gate_drop(g);
    return 0;
}

void df_gate_drop(struct df_gate *g)
{
    if (g->fd < 0)
        return;
    /* close() alone keeps the lease while a process that was just forked has the descriptor. */
    (void)fcntl(g->fd, F_SETLEASE, F_UNLCK);
    (void)close(g->fd);
    g->fd = -1;
}
