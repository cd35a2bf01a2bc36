/* dayfly state mv, rm, import; and list, rollback, unlock and push-errored for a state that dayfly
 * does not store: each is a run of one step, in which the tool's command works on the state. */
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/run.h"
#include "spawner/cli/signals.h"
#include "spawner/model/model.h"
#include "spawner/model/state_command.h"

/* {action: state, command: [name, -dry-run?, words...]} */
static int request_of(const struct df_cli *cli, const char *name, const char *const *words,
                      size_t count, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    cJSON *command = df_json_array_at(body, "command");
    if (df_json_add_str(body, "action", df_action_name(DF_ACTION_STATE), err) < 0 ||
        df_json_append_str(command, name, err) < 0 ||
        (df_arg_given(&cli->args, "dry-run") && df_json_append_str(command, "-dry-run", err) < 0))
        return -1;
    for (size_t i = 0; i < count; i++)
        if (df_json_append_str(command, words[i], err) < 0)
            return -1;
    *ret = DF_TAKE(body);
    return 0;
}

static int request(struct df_cli *cli, const char *executor, const char *name,
                   const char *const *words, size_t count, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_SECRET_JSON cJSON *body = NULL;
    if (request_of(cli, name, words, count, &body, err) < 0 ||
        df_signals_open(&signals_fd, err) < 0)
        return -1;
    return df_request_state_run(cli, executor, body, signals_fd, err);
}

/* Requests the command with the words after the executor. */
static int change(struct df_cli *cli, const char *name, struct df_err *err)
{
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    return request(cli, executor, name, (const char *const *)cli->args.words + 1,
                   cli->args.word_count - 1, err);
}

int df_cmd_state_mv(struct df_cli *cli, struct df_err *err)
{
    return change(cli, "mv", err);
}

int df_cmd_state_rm(struct df_cli *cli, struct df_err *err)
{
    return change(cli, "rm", err);
}

int df_cmd_state_import(struct df_cli *cli, struct df_err *err)
{
    return change(cli, "import", err);
}

/* ---- unlock ---- */

/* The ID in the message of a StateLocked failure: "... (lock ID): ..." or "..., lock ID): ...". The
 * caller frees. */
static char *id_within(const char *message)
{
    static const char key[] = "lock ";
    for (const char *p = message; p && (p = strstr(p, key));) {
        p += sizeof(key) - 1;
        size_t n = strcspn(p, " )");
        if (n && p[n] == ')')
            return strndup(p, n);
    }
    return NULL;
}

/* *ret: the ID of the lock that the executor's latest StateLocked run found. */
static int last_lock(struct df_cli *cli, const char *executor, char **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "runs", NULL);
    DF_JSON cJSON *runs = NULL;
    const cJSON *run = NULL, *newest = NULL;
    if (df_cli_list(cli, path, &runs, err) < 0)
        return -1;
    cJSON_ArrayForEach (run, runs) {
        bool locked = df_streq(df_json_str(run, "status.reason"), "StateLocked");
        if (locked && df_json_int(run, "spec.number", 0) >= df_json_int(newest, "spec.number", 0))
            newest = run;
    }
    *ret = id_within(df_json_str(newest, "status.message"));
    if (*ret)
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "no run of %s has failed at a lock, so its ID is not known: name it with "
                   "`dayfly state unlock %s ID`",
                   executor, executor);
}

int df_state_unlock_elsewhere(struct df_cli *cli, const char *executor, const char *id,
                              struct df_err *err)
{
    DF_FREE char *found = NULL;
    if (!id && last_lock(cli, executor, &found, err) < 0)
        return -1;
    return request(cli, executor, "force-unlock", (const char *[]){id ? id : found}, 1, err);
}

int df_state_list_elsewhere(struct df_cli *cli, const char *executor, struct df_err *err)
{
    return request(cli, executor, DF_COMMAND_HISTORY, NULL, 0, err);
}

int df_state_rollback_elsewhere(struct df_cli *cli, const char *executor, const char *version,
                                struct df_err *err)
{
    return request(cli, executor, DF_COMMAND_ROLLBACK, (const char *[]){version}, 1, err);
}

int df_state_push_errored_elsewhere(struct df_cli *cli, const char *executor, const char *step,
                                    struct df_err *err)
{
    return request(cli, executor, DF_COMMAND_PUSH_ERRORED, (const char *[]){step}, 1, err);
}
