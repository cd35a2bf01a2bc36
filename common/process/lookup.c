#include "common/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/parse.h"

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

char *df_process_which(const char *name, const char *path_env)
{
    if (!*name || strchr(name, '/'))
        return NULL;
    for (const char *dir = path_env; dir;) {
        const char *end = strchrnul(dir, ':');
        DF_FREE char *path = *dir == '/' ? df_strf("%.*s/%s", (int)(end - dir), dir, name) : NULL;
        if (path && is_program(path))
            return DF_TAKE(path);
        dir = *end ? end + 1 : NULL;
    }
    return NULL;
}

int df_process_own_path(char **ret, struct df_err *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0)
        return df_fail_errno(err, errno, "find the program's own path");
    path[n] = '\0';
    return df_check_alloc(*ret = strdup(path), err);
}

/* "pid (comm) state ppid ...": comm may contain ")", so search for the last one. */
static const char *after_comm(const char *stat_line)
{
    const char *p = strrchr(stat_line, ')');
    return p && p[1] == ' ' ? p + 2 : NULL;
}

enum { FIELD_STATE = 3, FIELD_START_TIME = 22 };

int df_process_start_time(pid_t pid, uint64_t *ret, struct df_err *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    DF_BUF struct df_buf b = DF_BUF_INIT(4096);
    if (df_fs_read(path, &b, err) < 0)
        return df_fail(err, DF_ERR_NOT_FOUND, "no process %d", (int)pid);
    const char *p = after_comm(df_buf_str(&b));
    for (int field = FIELD_STATE; p && field < FIELD_START_TIME; field++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    char *end = NULL;
    unsigned long long value = p ? strtoull(p, &end, 10) : 0;
    if (!p || end == p || *end != ' ')
        return df_fail(err, DF_ERR_SYSTEM, "%s is not understood", path);
    *ret = value;
    return 0;
}
