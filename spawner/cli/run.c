/* dayfly run: one request on a module or an executor, watched to its end. */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/follow.h"
#include "spawner/cli/module.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/summary.h"
#include "spawner/cli/variables.h"

static int add_arguments(cJSON *body, const struct df_args *args, struct df_err *err)
{
    const char *arg = NULL;
    for (size_t i = 0; (arg = df_arg_nth(args, "arg", i)); i++) {
        cJSON *list = df_json_array_at(body, "arguments");
        if (!list)
            return df_fail_oom(err);
        if (df_json_append_str(list, arg, err) < 0)
            return -1;
    }
    return 0;
}

/* When it starts, as the service's limits go. */
static int add_turn(cJSON *body, const struct df_args *args, struct df_err *err)
{
    const char *class_name = df_arg(args, "class"), *number = df_arg(args, "priority");
    int64_t priority = 0;
    if (class_name && !df_is_dns_label(class_name))
        return df_fail(err, DF_ERR_USER, "--class: \"%.64s\" is no name", class_name);
    if (number && df_parse_i64(number, -DF_LIMIT_PRIORITY, DF_LIMIT_PRIORITY, &priority, err) < 0)
        return df_err_wrap(err, "--priority");
    if (number && df_json_add_num(body, "priority", (double)priority, err) < 0)
        return -1;
    return df_json_add_str(body, "class", class_name, err);
}

static int request_of(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject(), *variables = NULL;
    if (!body)
        return df_fail_oom(err);
    if (df_variables_read(args, &variables, err) < 0 ||
        (variables->child && df_json_add(body, "variables", DF_TAKE(variables), err) < 0) ||
        (df_arg_given(args, "auto-approve") &&
         df_json_add_bool(body, "autoApprove", true, err) < 0) ||
        add_turn(body, args, err) < 0 || add_arguments(body, args, err) < 0)
        return -1;
    *ret = DF_TAKE(body);
    return 0;
}

static bool wants_document(const struct df_cli *cli)
{
    return df_cli_output(cli)[0] != '\0';
}

/* With -o the document has standard output for itself; a terminal still sees the progress. */
static void open_view(const struct df_cli *cli, struct df_view *view)
{
    int fd = !wants_document(cli) ? STDOUT_FILENO : cli->err_tty ? STDERR_FILENO : -1;
    bool terminal = fd == STDERR_FILENO || (fd == STDOUT_FILENO && cli->out_tty);
    df_view_init(view, fd, terminal, terminal && cli->color);
}

/* It waits for approval and there is nobody to ask here. */
static int nobody_to_ask(struct df_cli *cli, const char *run, const cJSON *doc, struct df_err *err)
{
    bool no_wait = df_arg_given(&cli->args, "no-wait");
    if (wants_document(cli) && df_summary_print(cli, doc, err) < 0)
        return -1;
    if (no_wait) {
        df_cli_note("%s waits for approval: `dayfly approve %s` or `dayfly discard %s`", run, run,
                    run);
        return DF_EXIT_OK;
    }
    return df_fail(err, DF_ERR_CONFLICT,
                   "declined: no terminal to ask on; use --auto-approve, or `dayfly approve %s` "
                   "(`dayfly discard %s` drops the plan)",
                   run, run);
}

static int follow(struct df_cli *cli, struct df_view *view, const char *run, int signals_fd,
                  struct df_err *err)
{
    const struct df_follow_options o = {.ask = cli->in_tty && view->terminal &&
                                               !df_arg_given(&cli->args, "no-wait"),
                                        .ours = true,
                                        .signals_fd = signals_fd};
    enum df_follow_end end = DF_FOLLOW_FINAL;
    DF_JSON cJSON *doc = NULL;
    int result = df_follow_run(cli, view, run, &o, &end, &doc, err);
    df_view_free(view);
    if (result < 0)
        return -1;
    if (end == DF_FOLLOW_WAITING)
        return nobody_to_ask(cli, run, doc, err);
    cli->left = end == DF_FOLLOW_LEFT;
    return cli->left ? DF_EXIT_INTERRUPTED : df_summary_print(cli, doc, err);
}

/* It goes on without us; where this process is the service, that stays for it. */
static int leave(struct df_cli *cli, const char *name, const cJSON *run, struct df_err *err)
{
    DF_FREE char *line = df_strf("run/%s created\n", name);
    if (!line)
        return df_fail_oom(err);
    if (!wants_document(cli))
        return df_cli_print(line, err);
    return df_summary_print(cli, run, err) < 0 ? -1 : DF_EXIT_OK;
}

/* POST of body to executors/<executor>/<what>, then with the run to its end, unless
 * it is left alone. */
static int request_run(struct df_cli *cli, const char *executor, const char *what,
                       const cJSON *body, int signals_fd, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, what, NULL);
    DF_JSON cJSON *run = NULL;
    if (!path)
        return df_fail_oom(err);
    if (df_cli_call(cli, "POST", path, body, &run, err) < 0)
        return -1;
    const char *name = df_json_str(run, "metadata.name");
    if (!name)
        return df_fail(err, DF_ERR_SYSTEM, "the server made a run without a name");
    if (df_arg_given(&cli->args, "detach"))
        return leave(cli, name, run, err);
    struct df_view view;
    open_view(cli, &view);
    df_view_say(&view, DF_TONE_STRONG, "%s: %s of %s", name, df_json_str(run, "spec.action"),
                executor);
    return follow(cli, &view, name, signals_fd, err);
}

int df_cmd_run(struct df_cli *cli, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_JSON cJSON *body = NULL;
    DF_FREE char *executor = NULL;
    const char *action = df_arg(&cli->args, "action");
    if (request_of(&cli->args, &body, err) < 0 ||
        df_json_add_str(body, "action", action ? action : "provision", err) < 0 ||
        df_signals_open(&signals_fd, err) < 0)
        return -1;
    if (df_cli_connect(cli, err) < 0 || df_module_executor(cli, &executor, err) < 0)
        return -1;
    return request_run(cli, executor, "runs", body, signals_fd, err);
}

int df_cmd_recreate(struct df_cli *cli, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_JSON cJSON *body = NULL;
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 ||
        request_of(&cli->args, &body, err) < 0 || df_signals_open(&signals_fd, err) < 0)
        return -1;
    return request_run(cli, executor, "recreate", body, signals_fd, err);
}
