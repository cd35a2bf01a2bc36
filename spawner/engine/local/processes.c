/*
 * Identities of processes (pid and start time), and the search in /proc for the processes of a
 * session.
 */
#include "spawner/engine/local/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/process/process.h"

static void cleanup_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}
#define CLOSEDIR DF_CLEANUP(cleanup_dir)

/* ---- identities ---- */

static int boot_id(char out[64], struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(64);
    if (df_fs_read("/proc/sys/kernel/random/boot_id", &b, err) < 0)
        return -1;
    (void)snprintf(out, 64, "%.*s", (int)strcspn(df_buf_str(&b), "\n"), df_buf_str(&b));
    return 0;
}

int df_identity_of(pid_t pid, struct df_identity *ret, struct df_err *err)
{
    uint64_t start;
    if (df_process_start_time(pid, &start, err) < 0)
        return -1;
    *ret = (struct df_identity){pid, start};
    return 0;
}

int df_identity_write(const char *path, const struct df_identity *id, struct df_err *err)
{
    char boot[64], text[128];
    if (boot_id(boot, err) < 0)
        return -1;
    int n = snprintf(text, sizeof(text), "%d %llu %s\n", (int)id->pid,
                     (unsigned long long)id->start, boot);
    return df_fs_replace(path, text, (size_t)n, 0600, err);
}

int df_identity_read(const char *path, struct df_identity *ret, struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(256);
    char boot[64], then[64];
    int64_t pid, start;
    if (df_fs_read(path, &b, err) < 0 || boot_id(boot, err) < 0)
        return -1;
    const char *text = df_buf_str(&b);
    if (!df_scan_i64(&text, &pid) || !df_scan_i64(&text, &start) ||
        sscanf(text, "%63s", then) != 1 || pid <= 0 || pid > INT32_MAX || start < 0)
        return df_fail(err, DF_ERR_SYSTEM, "%s does not name a process", path);
    if (!df_streq(boot, then))
        return df_fail(err, DF_ERR_NOT_FOUND, "%s is from an earlier boot", path);
    *ret = (struct df_identity){(pid_t)pid, (unsigned long long)start};
    return 0;
}

/* The session of a living process; -1: it is gone or a zombie. */
static pid_t session_of(pid_t pid)
{
    char path[64], state;
    int64_t parent, group, session;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    DF_BUF struct df_buf b = DF_BUF_INIT(4 * DF_KIB);
    if (df_fs_read(path, &b, NULL) < 0)
        return -1;
    const char *p = strrchr(df_buf_str(&b), ')'); /* the name before it may contain any character */
    if (!p || sscanf(p, ") %c", &state) != 1)
        return -1;
    p += strlen(") S");
    if (!df_scan_i64(&p, &parent) || !df_scan_i64(&p, &group) || !df_scan_i64(&p, &session))
        return -1;
    return state == 'Z' || state == 'X' ? -1 : (pid_t)session;
}

bool df_identity_lives(const struct df_identity *id)
{
    uint64_t start;
    return df_process_start_time(id->pid, &start, NULL) == 0 && start == id->start &&
           session_of(id->pid) >= 0;
}

int df_identity_open(const struct df_identity *id, int *ret_pidfd, struct df_err *err)
{
    DF_CLOSE int fd = pidfd_open(id->pid, 0);
    if (fd < 0 && errno != ESRCH)
        return df_fail_errno(err, errno, "watch process %d", (int)id->pid);
    /* Check the start time after opening, so that the descriptor is certainly of this process. */
    *ret_pidfd = fd >= 0 && df_identity_lives(id) ? DF_TAKE_FD(fd) : -1;
    return 0;
}

/* ---- all processes ---- */

/* The next process of an open /proc; 0 at the end. */
static pid_t next_process(DIR *proc)
{
    for (struct dirent *e; (e = readdir(proc));) {
        int64_t pid;
        if (df_parse_i64(e->d_name, 1, INT32_MAX, &pid, NULL) == 0)
            return (pid_t)pid;
    }
    return 0;
}

static void signal_member(pid_t pid, pid_t session, int sig)
{
    DF_CLOSE int fd = pidfd_open(pid, 0);
    /* Check again after opening: another process may have got the pid. */
    if (fd >= 0 && session_of(pid) == session)
        (void)pidfd_send_signal(fd, sig, NULL, 0);
}

/* The kernel does not reuse a pid while a session has that number. So if another process has the
 * leader's pid, the session is empty. */
static bool number_was_reused(const struct df_identity *leader)
{
    uint64_t start;
    return df_process_start_time(leader->pid, &start, NULL) == 0 && start != leader->start;
}

int df_session_signal(const struct df_identity *leader, int sig, size_t *ret_living,
                      struct df_err *err)
{
    CLOSEDIR DIR *proc = opendir("/proc");
    if (!proc)
        return df_fail_errno(err, errno, "read /proc");
    size_t living = 0;
    bool reused = number_was_reused(leader);
    for (pid_t pid; !reused && (pid = next_process(proc));) {
        if (session_of(pid) != leader->pid)
            continue;
        living++;
        if (sig)
            signal_member(pid, leader->pid, sig);
    }
    *ret_living = living;
    return 0;
}

static bool has_argument(pid_t pid, const char *argument)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    DF_BUF struct df_buf b = DF_BUF_INIT(64 * DF_KIB);
    if (df_fs_read(path, &b, NULL) < 0)
        return false;
    const char *end = df_buf_str(&b) + b.len;
    for (const char *a = df_buf_str(&b); a < end; a += strlen(a) + 1)
        if (df_streq(a, argument))
            return true;
    return false;
}

int df_session_with_argument(const char *argument, pid_t *ret, struct df_err *err)
{
    CLOSEDIR DIR *proc = opendir("/proc");
    if (!proc)
        return df_fail_errno(err, errno, "read /proc");
    for (pid_t pid; (pid = next_process(proc));) {
        if (pid != getpid() && has_argument(pid, argument) && session_of(pid) == pid) {
            *ret = pid;
            return 0;
        }
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "no session has the argument %s", argument);
}
