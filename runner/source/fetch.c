#include "runner/source/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "common/base/fs.h"

void df_fetch_note(const struct df_fetch *f, const char *fmt, ...)
{
    if (f->log_fd < 0)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    (void)dprintf(f->log_fd, "dayfly: %s\n", line);
}

int df_fetch_check_shown(const struct df_fetch *f, int fd, struct df_err *err)
{
    if (!f->hidden || !df_wall_touches_hidden(f->hidden, fd))
        return 0;
    return df_fail_reason(
        err, DF_ERR_DENIED, "SourceRefused",
        "source.url: %s is, or contains, the data directory, a key of the service "
        "or temporary files of steps, which no step may see: move the module "
        "elsewhere, or set dataDirectory",
        f->spec->url);
}

int df_fetch_private_file(const struct df_fetch *f, const char *name, const char *text, char **ret,
                          struct df_err *err)
{
    DF_FREE char *path = df_fs_join(f->private_dir, name);
    if (!path)
        return df_fail_oom(err);
    /* No fsync: it is removed after the fetch. */
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (df_fs_write_all(fd, text, strlen(text), err) < 0)
        return df_err_wrap(err, "%s", path);
    *ret = DF_TAKE(path);
    return 0;
}
