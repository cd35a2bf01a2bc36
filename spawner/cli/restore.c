/* dayfly restore: makes a data directory of the file of a backup. */
#include "spawner/backup/restore.h"

#include "spawner/cli/backup.h"
#include "spawner/cli/commands.h"
#include "spawner/config/config.h"

static int print_restored(const char *directory, const struct df_restored *r, struct df_err *err)
{
    const char *bucket = df_json_str(r->header, "location");
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    (void)df_buf_addf(&out, "%s is as it was at %s\n", directory,
                      df_json_str(r->header, "createdAt"));
    if (r->canceled)
        (void)df_buf_addf(&out,
                          "Canceled what was under way then: %lld run%s or workflow%s. Plan before "
                          "you apply: what was changed after the backup is not in the states.\n",
                          (long long)r->canceled, r->canceled == 1 ? "" : "s",
                          r->canceled == 1 ? "" : "s");
    if (!r->has_key)
        (void)df_buf_addf(&out,
                          "The key is not in the backup: put it into %s/key (mode 0600) before you "
                          "start dayfly.\n",
                          directory);
    if (bucket)
        (void)df_buf_addf(&out,
                          "States, plans and logs are in %s: set blobs.location to it. The first "
                          "start names the installation that has it, for blobs.takeOver.\n",
                          bucket);
    df_backup_add_elsewhere(r->header, &out);
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

static int restore(const char *path, const char *directory, struct df_err *err)
{
    struct df_restored r = {0};
    DF_CLOSE int fd = -1;
    if (df_backup_open_file(path, &fd, err) < 0)
        return -1;
    if (df_restore(fd, directory, &r, err) < 0)
        return df_err_wrap(err, "%s", path);
    int result = print_restored(directory, &r, err);
    cJSON_Delete(r.header);
    return result;
}

int df_cmd_restore(struct df_cli *cli, struct df_err *err)
{
    DF_STRS struct df_strs settings = {0};
    struct df_config config = {0};
    if (df_cli_settings(&cli->args, &settings, err) < 0 ||
        df_config_load(df_cli_config(cli), environ, &settings, &config, err) < 0)
        return -1;
    int result = config.in_cluster
                     ? df_fail(err, DF_ERR_USER,
                               "store: kubernetes keeps documents in the cluster: restore its "
                               "namespace, as docs/upkeep.md describes")
                     : restore(df_cli_word(cli, 0), config.data_directory, err);
    df_config_free(&config);
    return result;
}
