/* dayfly backup: writes everything of a service into one file, and checks such a file. */
#include "spawner/cli/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>

#include "common/base/fs.h"
#include "spawner/backup/read.h"
#include "spawner/cli/commands.h"

int df_backup_open_file(const char *path, int *ret_fd, struct df_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    *ret_fd = fd;
    return 0;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check(const char *path, int fd, struct df_backup_facts *ret, struct df_err *err)
{
    return df_backup_read(fd, NULL, ret, err) < 0 ? df_err_wrap(err, "%s", path) : 0;
}

static int print_facts(const char *path, const struct df_backup_facts *facts, struct df_err *err)
{
    const cJSON *header = facts->header;
    const char *bucket = df_json_str(header, "location");
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    (void)df_buf_addf(&out, "%s: complete, of %s by dayfly %s; %lld files, %lld bytes\n", path,
                      df_json_str(header, "createdAt"), df_json_str(header, "version"),
                      (long long)facts->files, (long long)facts->bytes);
    (void)df_buf_adds(&out, df_json_bool(header, "key", false)
                                ? "It contains the key and opens everything: protect it like the "
                                  "data directory.\n"
                                : "It does not contain the key, without which states, plans and "
                                  "secrets cannot be read.\n");
    if (bucket)
        (void)df_buf_addf(&out,
                          "It contains documents and secrets only: states, plans and logs are in "
                          "%s.\n",
                          bucket);
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int download(struct df_cli *cli, int fd, struct df_err *err)
{
    bool bare = df_arg_given(&cli->args, "without-key");
    if (df_cli_connect(cli, err) < 0 ||
        df_client_download(cli->client, bare ? "/v1/backup?key=false" : "/v1/backup", fd, err) < 0)
        return -1;
    return fsync(fd) < 0 ? df_fail_errno(err, errno, "sync") : 0;
}

/* Gives the complete file its name, durably; it never replaces one. */
static int publish(const char *unfinished, const char *path, struct df_err *err)
{
    DF_FREE char *copy = strdup(path);
    if (!copy)
        return df_fail_oom(err);
    if (link(unfinished, path) < 0)
        return df_fail_errno(err, errno, "create %s", path);
    return df_fs_sync_dir(dirname(copy), err);
}

static int make(struct df_cli *cli, const char *path, char *unfinished, struct df_backup_facts *ret,
                struct df_err *err)
{
    DF_CLOSE int fd = mkostemp(unfinished, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", unfinished);
    int result = download(cli, fd, err);
    if (result == 0)
        result = check(path, fd, ret, err);
    if (result == 0)
        result = publish(unfinished, path, err);
    (void)unlink(unfinished);
    return result;
}

static int check_or_make(struct df_cli *cli, const char *path, struct df_backup_facts *ret,
                         struct df_err *err)
{
    DF_FREE char *unfinished = df_strf("%s.part-XXXXXX", path);
    DF_CLOSE int fd = -1;
    if (!unfinished)
        return df_fail_oom(err);
    if (df_arg_given(&cli->args, "verify"))
        return df_backup_open_file(path, &fd, err) < 0 ? -1 : check(path, fd, ret, err);
    if (df_fs_exists(path))
        return df_fail(err, DF_ERR_CONFLICT, "%s exists: a backup replaces no file", path);
    return make(cli, path, unfinished, ret, err);
}

int df_cmd_backup(struct df_cli *cli, struct df_err *err)
{
    struct df_backup_facts facts = {0};
    const char *path = df_cli_word(cli, 0);
    cli->as = DF_CONNECT_LOOK;
    if (check_or_make(cli, path, &facts, err) < 0)
        return -1;
    int result = print_facts(path, &facts, err);
    cJSON_Delete(facts.header);
    return result;
}
