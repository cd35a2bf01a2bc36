#include "runner/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"

enum { PATIENCE_MS = 5000, PAUSE_MS = 5 };

int df_orphans_adopt(struct df_err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return df_fail_errno(err, errno, "become the parent of orphans");
    return 0;
}

/* Field 4 of /proc/<pid>/stat, after the name, which may have any bytes. -1: there is no such
 * process. */
static int64_t parent_of(const char *pid)
{
    DF_FREE char *path = df_strf("/proc/%s/stat", pid);
    DF_BUF struct df_buf b = DF_BUF_INIT(4096);
    if (!path || df_fs_read(path, &b, NULL) < 0)
        return -1;
    const char *name_end = strrchr(df_buf_str(&b), ')');
    if (!name_end || strlen(name_end) < 5)
        return -1;
    const char *field = name_end + 4; /* ") S 123 " */
    DF_FREE char *number = strndup(field, strcspn(field, " "));
    int64_t ppid;
    return number && df_parse_i64(number, 0, INT32_MAX, &ppid, NULL) == 0 ? ppid : -1;
}

/* A child keeps its pid until it is reaped, so the signal cannot hit another process. */
static void kill_children(void)
{
    DIR *proc = opendir("/proc");
    for (const struct dirent *e; proc && (e = readdir(proc));) {
        int64_t pid;
        if (df_parse_i64(e->d_name, 1, INT32_MAX, &pid, NULL) == 0 &&
            parent_of(e->d_name) == getpid())
            (void)kill((pid_t)pid, SIGKILL);
    }
    if (proc)
        (void)closedir(proc);
}

/* False: there is no child left. */
static bool reap_children(void)
{
    pid_t pid;
    do {
        pid = waitpid(-1, NULL, WNOHANG);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

bool df_orphans_end(void)
{
    int64_t deadline = df_mono_ms() + PATIENCE_MS;
    bool is_left;
    while ((is_left = reap_children()) && df_mono_ms() < deadline) {
        kill_children();
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return !is_left;
}
