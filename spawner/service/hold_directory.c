#include "spawner/service/hold_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/store/documents/unclean.h"

static int make_directory(const char *path, struct df_err *err)
{
    if (df_fs_mkdirs(path, 0700, err) < 0)
        return df_err_wrap(err, "dataDirectory");
    /* One that was made by hand may be open to others: states and logs lie in it. */
    if (chmod(path, 0700) < 0)
        return df_fail_errno(err, errno, "dataDirectory: close %s to others", path);
    return 0;
}

/* ", at http://127.0.0.1:8030" of the service there, or "". */
static void add_endpoint(const char *endpoint_file, struct df_buf *out)
{
    DF_BUF struct df_buf url = DF_BUF_INIT(DF_KIB);
    int n = df_fs_read(endpoint_file, &url, NULL) < 0 ? 0 : (int)strcspn(df_buf_str(&url), "\n");
    if (n)
        (void)df_buf_addf(out, ", at %.*s", n, df_buf_str(&url));
}

static int fail_busy(const char *path, const char *endpoint_file, struct df_err *err)
{
    struct df_holder holder = {0};
    DF_BUF struct df_buf at = DF_BUF_INIT(2 * DF_KIB);
    add_endpoint(endpoint_file, &at);
    if (!df_holder_find(path, &holder))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Busy",
                              "another dayfly process holds the data directory %s%s", path,
                              df_buf_str(&at));
    return df_fail_reason(err, DF_ERR_CONFLICT, "Busy",
                          "process %d (%s) holds the data directory %s%s: end it first, or choose "
                          "another --data-directory",
                          (int)holder.pid, holder.command, path, df_buf_str(&at));
}

/* Whoever looks for the cause of a gap finds its time and its count, even if the process that ended
 * had no chance to write a line. */
static int note_unclean_end(const char *path, int fd, struct df_err *err)
{
    struct df_holder before = {0};
    struct df_unclean all;
    if (df_holder_left_behind(fd, &before)) {
        df_warn("the process before this one (%d, %s) ended without stopping: it was killed, ran "
                "out of memory, or its log ends with a fatal signal",
                (int)before.pid, before.command);
        if (df_unclean_add(path, &before, err) < 0)
            return -1;
    }
    df_unclean_read(path, &all);
    df_metric_set(df_metric_gauge("dayfly_unclean_ends",
                                  "Processes that held this data directory and ended without "
                                  "stopping.",
                                  NULL),
                  NULL, (double)all.count);
    return 0;
}

int df_hold_directory(const char *path, const char *endpoint_file, int *ret_fd, struct df_err *err)
{
    if (make_directory(path, err) < 0)
        return -1;
    DF_FREE char *file = df_fs_join(path, "lock");
    if (!file)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? fail_busy(path, endpoint_file, err)
                                    : df_fail_errno(err, errno, "lock %s", file);
    if (note_unclean_end(path, fd, err) < 0 || df_holder_write(fd, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

void df_release_directory(int fd)
{
    if (fd < 0)
        return;
    df_holder_clear(fd);
    (void)close(fd);
}
