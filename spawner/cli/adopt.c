/* dayfly state push and pull: store a state that was created elsewhere, and read the newest one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/module.h"

/* ---- push ---- */

static int too_large(const char *name, struct df_err *err)
{
    return df_fail(err, DF_ERR_LIMIT, "%s: a state has at most %zu bytes, this one has more", name,
                   DF_LIMIT_STATE);
}

static int open_file(const char *name, int *ret_fd, size_t *ret_size, struct df_err *err)
{
    DF_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)df_fail_errno(err, errno, "open %s", name);
        err->cls = DF_ERR_USER;
        return -1;
    }
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s: is not a file; - is standard input", name);
    if ((uint64_t)st.st_size > DF_LIMIT_STATE)
        return too_large(name, err);
    *ret_size = (size_t)st.st_size;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

/* Reads standard input completely, because the size must be known before the state is sent. */
static int collect_input(int *ret_fd, size_t *ret_size, struct df_err *err)
{
    DF_CLOSE int fd = memfd_create("state", MFD_CLOEXEC);
    char piece[64 * DF_KIB];
    size_t size = 0;
    ssize_t n;
    if (fd < 0)
        return df_fail_errno(err, errno, "memfd_create");
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return df_fail_errno(err, errno, "read standard input");
        size += (size_t)n;
        if (size > DF_LIMIT_STATE)
            return too_large("standard input", err);
        if (df_fs_write_all(fd, piece, (size_t)n, err) < 0)
            return -1;
    }
    *ret_size = size;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int open_state(const char *name, int *ret_fd, size_t *ret_size, struct df_err *err)
{
    int result = df_streq(name, "-") ? collect_input(ret_fd, ret_size, err)
                                     : open_file(name, ret_fd, ret_size, err);
    if (result == 0 && *ret_size == 0)
        return df_fail(err, DF_ERR_USER, "%s: is empty", name);
    return result;
}

static int say_pushed(const struct df_cli *cli, const char *executor, const cJSON *version,
                      struct df_err *err)
{
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, version, err);
    return df_cli_printf(err,
                         "The state of %s is version %lld now (serial %lld, lineage %s); "
                         "`dayfly run %s --action dry-run` compares it.\n",
                         executor, (long long)df_json_int(version, "version", 0),
                         (long long)df_json_int(version, "serial", 0),
                         df_json_str(version, "lineage"), executor);
}

int df_cmd_state_push(struct df_cli *cli, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    DF_FREE char *executor = NULL;
    DF_JSON cJSON *version = NULL;
    size_t size = 0;
    if (open_state(df_cli_word(cli, 1), &fd, &size, err) < 0 || df_cli_connect(cli, err) < 0 ||
        df_module_executor(cli, NULL, &executor, err) < 0)
        return -1;
    DF_FREE char *plain = df_path("executors", executor, "state", "push", NULL);
    bool replace = df_arg_given(&cli->args, "replace");
    DF_FREE char *path = plain ? df_strf("%s%s", plain, replace ? "?replace=true" : "") : NULL;
    if (df_client_post_file(cli->client, path, fd, size, &version, err) < 0)
        return df_err_wrap(err, "%s", df_cli_word(cli, 1));
    return say_pushed(cli, executor, version, err);
}

/* ---- pull ---- */

/* Does not replace an existing file: it could be the only copy of another state. */
static int create_file(const char *name, int *ret_fd, struct df_err *err)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return df_fail(err, DF_ERR_USER, "--file %s: is there already, and is not replaced", name);
    if (fd < 0) {
        (void)df_fail_errno(err, errno, "create %s", name);
        err->cls = DF_ERR_USER;
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

static int pull_to_file(struct df_cli *cli, const char *path, const char *name, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (create_file(name, &fd, err) < 0)
        return -1;
    if (df_client_download(cli->client, path, fd, err) < 0) {
        (void)unlink(name);
        return -1;
    }
    if (lseek(fd, 0, SEEK_CUR) == 0) {
        (void)unlink(name);
        return df_fail(err, DF_ERR_NOT_FOUND, "the state of %s was deleted; no file is written",
                       df_cli_word(cli, 0));
    }
    return fsync(fd) < 0 ? df_fail_errno(err, errno, "write %s", name) : 0;
}

int df_cmd_state_pull(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL, *file = df_arg(&cli->args, "file");
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 || df_cli_connect(cli, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", NULL);
    if (!path)
        return df_fail_oom(err);
    return file ? pull_to_file(cli, path, file, err)
                : df_client_download(cli->client, path, STDOUT_FILENO, err);
}
