/* dayfly backup: writes everything of a service into one file, and checks such a file. */
#include "spawner/cli/backup.h"

#include <errno.h>
#include <fcntl.h>

#include "spawner/backup/read.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/unfinished.h"

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

void df_backup_add_elsewhere(const cJSON *header, struct df_buf *out)
{
    const cJSON *all = df_json_at(header, "elsewhere"), *executor;
    int64_t count = df_json_int(all, "count", 0), named = 0;
    if (count < 1)
        return;
    (void)df_buf_adds(out, "States of executors with a storage of their own are there, and not in "
                           "the backup: ");
    cJSON_ArrayForEach (executor, df_json_at(all, "executors"))
        (void)df_buf_addf(out, "%s%s (%s)", named++ ? ", " : "", df_json_str(executor, "name"),
                          df_json_str(executor, "type"));
    if (count > named)
        (void)df_buf_addf(out, " and %lld more", (long long)(count - named));
    (void)df_buf_addc(out, '\n');
}

static int print_facts(const char *path, const struct df_backup_facts *facts, struct df_err *err)
{
    const cJSON *header = facts->header;
    const char *bucket = df_json_str(header, "location");
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    (void)df_buf_addf(&out, "%s: complete, of %s by dayfly %s; %lld file%s, %lld bytes\n", path,
                      df_json_str(header, "createdAt"), df_json_str(header, "version"),
                      (long long)facts->files, facts->files == 1 ? "" : "s",
                      (long long)facts->bytes);
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
    df_backup_add_elsewhere(header, &out);
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

static int make(struct df_cli *cli, const char *path, struct df_backup_facts *ret,
                struct df_err *err)
{
    DF_UNFINISHED struct df_unfinished *file = NULL;
    if (df_unfinished_new(path, &file, err) < 0)
        return -1;
    int fd = df_unfinished_fd(file);
    if (download(cli, fd, err) < 0 || check(path, fd, ret, err) < 0)
        return -1;
    if (df_unfinished_publish(file, err) == 0)
        return 0;
    cJSON_Delete(ret->header);
    return -1;
}

static int verify(const char *path, struct df_backup_facts *ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    return df_backup_open_file(path, &fd, err) < 0 ? -1 : check(path, fd, ret, err);
}

int df_cmd_backup(struct df_cli *cli, struct df_err *err)
{
    struct df_backup_facts facts = {0};
    const char *path = df_cli_word(cli, 0);
    cli->as = DF_CONNECT_LOOK;
    bool is_there = df_arg_given(&cli->args, "verify");
    if (is_there ? verify(path, &facts, err) < 0 : make(cli, path, &facts, err) < 0)
        return -1;
    int result = print_facts(path, &facts, err);
    cJSON_Delete(facts.header);
    return result;
}
