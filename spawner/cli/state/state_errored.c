/* dayfly state errored, push-errored, discard-errored: states that steps could not store. */
#include <errno.h>

#include "spawner/cli/commands.h"
#include "spawner/cli/run.h"
#include "spawner/cli/state/state_file.h"

static int list_errored(struct df_cli *cli, cJSON **ret, struct df_err *err)
{
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", "errored", NULL);
    return df_cli_call(cli, "GET", path, NULL, ret, err);
}

int df_cmd_state_errored(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    if (list_errored(cli, &list, err) < 0)
        return -1;
    return df_cli_print_json(cli, list, err);
}

/* *ret: the step of the only errored state. Fails if there is none or more than one. */
static int pick_errored(struct df_cli *cli, char **ret, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    if (list_errored(cli, &list, err) < 0)
        return -1;
    const cJSON *items = df_json_at(list, "items");
    if (cJSON_GetArraySize(items) == 0)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no errored state of %s",
                       df_cli_word(cli, 0));
    if (cJSON_GetArraySize(items) > 1)
        return df_fail(err, DF_ERR_USER,
                       "there is more than one errored state; name the step (`dayfly state errored "
                       "%s` lists them)",
                       df_cli_word(cli, 0));
    const char *step = df_json_str(items->child, "step");
    return df_check_alloc(*ret = step ? strdup(step) : NULL, err);
}

/* *ret: the step that the command names, or that of the only errored state. The caller frees. */
static int find_step(struct df_cli *cli, char **ret, struct df_err *err)
{
    const char *named = df_cli_word(cli, 1);
    if (!named)
        return pick_errored(cli, ret, err);
    return df_check_alloc(*ret = strdup(named), err);
}

int df_cmd_state_push_errored(struct df_cli *cli, struct df_err *err)
{
    struct df_err why = {0};
    const char *executor = NULL;
    DF_FREE char *step = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 || find_step(cli, &step, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", "errored", step, "push", NULL);
    if (df_cli_call(cli, "POST", path, NULL, NULL, &why) < 0)
        return df_streq(why.reason, "StateElsewhere")
                   ? df_state_push_errored_elsewhere(cli, executor, step, err)
                   : df_err_pass(err, &why);
    return df_cli_print("The errored state is the newest version now.\n", err);
}

/* ---- discard ---- */

/* Writes what is at `from` to a new file. On failure there is no such file. */
static int save(struct df_cli *cli, const char *from, const char *file, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if ((!cli->client && df_cli_connect(cli, err) < 0) || df_copy_create(file, &fd, err) < 0)
        return -1;
    if (df_client_download(cli->client, from, fd, err) == 0) {
        if (fsync(fd) == 0)
            return 0;
        (void)df_fail_errno(err, errno, "sync %s", file);
    }
    (void)unlink(file);
    return df_err_wrap(err, "the errored state was not written, nothing was deleted");
}

/* A state that nobody can read is no reason to refuse runs for ever. */
static int save_if_readable(struct df_cli *cli, const char *from, const char *file, bool *ret_saved,
                            struct df_err *err)
{
    struct df_err why = {0};
    *ret_saved = save(cli, from, file, &why) == 0;
    if (!*ret_saved && !df_streq(why.reason, "StateUnreadable"))
        return df_err_pass(err, &why);
    if (!*ret_saved)
        df_cli_note("%s", why.message);
    return 0;
}

int df_cmd_state_discard_errored(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL, *wanted = df_arg(&cli->args, "state-file");
    DF_FREE char *step = NULL;
    bool saved = false;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 || find_step(cli, &step, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", "errored", step, NULL);
    DF_FREE char *file = wanted ? strdup(wanted) : df_strf("%s.errored.tfstate", executor);
    if (!path || !file)
        return df_fail_oom(err);
    if (save_if_readable(cli, path, file, &saved, err) < 0 ||
        df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1; /* if the answer was lost, it may be deleted: the file stays */
    if (saved)
        df_cli_note("the errored state is in %s (with its secrets)", file);
    return df_cli_printf(err,
                         "The errored state of %s is not kept any more; runs go on with "
                         "the stored state.\n",
                         executor);
}
