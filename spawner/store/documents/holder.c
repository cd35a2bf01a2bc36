#include "spawner/store/documents/holder.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>

#include "common/base/fs.h"
#include "common/base/parse.h"

#define LINE_MAX_BYTES 128
#define CMDLINE_MAX (128 * DF_KIB)

/* Extracts "dayfly run" from the NUL-separated arguments; only the program if an option comes
 * first. */
static void command_of(const struct df_buf *arguments, char out[DF_HOLDER_COMMAND])
{
    const char *p = df_buf_str(arguments), *end = p + arguments->len;
    const char *slash = strrchr(p, '/');
    const char *program = slash ? slash + 1 : p;
    const char *verb = p + strlen(p) + 1;
    bool has_verb = verb < end && *verb && *verb != '-';
    (void)snprintf(out, DF_HOLDER_COMMAND, "%.30s%s%.30s", *program ? program : "dayfly",
                   has_verb ? " " : "", has_verb ? verb : "");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

int df_holder_write(int lock_fd, struct df_err *err)
{
    DF_BUF struct df_buf arguments = DF_BUF_INIT(CMDLINE_MAX);
    char command[DF_HOLDER_COMMAND], line[LINE_MAX_BYTES];
    if (df_fs_read("/proc/self/cmdline", &arguments, NULL) < 0)
        df_buf_clear(&arguments);
    command_of(&arguments, command);
    int n = snprintf(line, sizeof(line), "%d %s\n", (int)getpid(), command);
    if (ftruncate(lock_fd, 0) < 0 || pwrite(lock_fd, line, (size_t)n, 0) != n)
        return df_fail_errno(err, errno, "write the lock file of the data directory");
    return 0;
}

void df_holder_clear(int lock_fd)
{
    /* A remaining line does no harm: readers check whether the process it names is alive. */
    if (ftruncate(lock_fd, 0) < 0)
        return;
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

static bool parse(const struct df_buf *line, struct df_holder *ret)
{
    int64_t pid = 0;
    const char *command = df_buf_str(line);
    if (!df_scan_i64(&command, &pid) || pid <= 0 || pid > INT_MAX)
        return false;
    ret->pid = (pid_t)pid;
    command += *command == ' ';
    (void)snprintf(ret->command, sizeof(ret->command), "%.*s", (int)strcspn(command, "\n"),
                   command);
    return true;
}

bool df_holder_find(const char *data_directory, struct df_holder *ret)
{
    DF_FREE char *path = df_fs_join(data_directory, "lock");
    DF_BUF struct df_buf line = DF_BUF_INIT(LINE_MAX_BYTES);
    return path && df_fs_read(path, &line, NULL) == 0 && parse(&line, ret) && is_alive(ret->pid);
}

bool df_holder_left_behind(int lock_fd, struct df_holder *ret)
{
    DF_BUF struct df_buf line = DF_BUF_INIT(LINE_MAX_BYTES);
    return df_fs_read_at(lock_fd, 0, LINE_MAX_BYTES, &line, NULL) == 0 && parse(&line, ret);
}
