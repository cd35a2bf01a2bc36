/*
 * dayfly run, plan, destroy, recreate: request a run of a module or an executor, and follow it.
 * Read run_module() near the end, then df_request_run().
 */
#include "spawner/cli/run.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/caller.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/follow.h"
#include "spawner/cli/follow/summary.h"
#include "spawner/cli/keep.h"
#include "spawner/cli/module.h"
#include "spawner/cli/sealing.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/variables.h"
#include "spawner/model/model.h"

/* True for options that the tool has under the same name. */
static bool is_for_tool(const char *option)
{
    return df_args_word("target|exclude|replace|refresh|refresh-only|parallelism|compact-warnings",
                        option);
}

/* Appends the tool's argument for this option; nothing for other options. */
static void argument_of(const struct df_arg *given, struct df_buf *out)
{
    const char *option = given->option->name;
    if (df_streq(option, "arg"))
        (void)df_buf_adds(out, given->value);
    else if (is_for_tool(option))
        (void)df_buf_addf(out, "-%s%s%s", option, given->value ? "=" : "",
                          given->value ? given->value : "");
}

static int add_arguments(cJSON *body, const struct df_args *args, struct df_err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        DF_BUF struct df_buf argument = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
        argument_of(&args->given[i], &argument);
        if (df_buf_check(&argument, err) < 0)
            return -1;
        if (!argument.len)
            continue;
        if (df_json_append_str(df_json_array_at(body, "arguments"), df_buf_str(&argument), err) < 0)
            return -1;
    }
    return 0;
}

/* Adds class and priority, which decide when the run starts. */
static int add_turn(cJSON *body, const struct df_args *args, struct df_err *err)
{
    const char *class_name = df_arg(args, "class"), *number = df_arg(args, "priority");
    int64_t priority = 0;
    if (class_name && !df_is_dns_label(class_name))
        return df_fail(err, DF_ERR_USER, "--class: \"%.64s\" is not a valid name", class_name);
    if (number && df_parse_i64(number, -DF_LIMIT_PRIORITY, DF_LIMIT_PRIORITY, &priority, err) < 0)
        return df_err_wrap(err, "--priority");
    if (number && df_json_add_num(body, "priority", (double)priority, err) < 0)
        return -1;
    return df_json_add_str(body, "class", class_name, err);
}

static int request_of(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    if (df_check_alloc(body, err) < 0 || df_variables_read(args, body, err) < 0 ||
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

/* With -o only the document goes to standard output, and the progress to standard error. */
static void open_view(const struct df_cli *cli, struct df_view *view)
{
    bool aside = wants_document(cli), terminal = aside ? cli->err_tty : cli->out_tty;
    df_view_init(view, aside ? STDERR_FILENO : STDOUT_FILENO, terminal, terminal && cli->color);
}

/* Ends the command for a run that waits for approval when nobody can be asked. */
static int nobody_to_ask(struct df_cli *cli, const char *run, const cJSON *doc, struct df_err *err)
{
    bool no_wait = df_arg_given(&cli->args, "no-wait");
    if (wants_document(cli) && df_summary_print(cli, doc, "", err) < 0)
        return -1;
    if (no_wait) {
        df_cli_note("%s waits for approval: `dayfly approve %s` or `dayfly discard %s`", run, run,
                    run);
        return DF_EXIT_OK;
    }
    if (df_approval_count(doc) > 0)
        return df_fail(err, DF_ERR_DENIED,
                       "not applied: %s has %lld of the required approvals; the others approve it "
                       "with `dayfly approve %s`, or somebody drops it with `dayfly discard %s`",
                       run, (long long)df_approval_count(doc), run, run);
    const char *why = df_json_str(doc, "status.message");
    if (!df_str_empty(why))
        return df_fail(err, DF_ERR_DENIED, "not applied: %s", why);
    return df_fail(err, DF_ERR_CONFLICT,
                   "not applied: %s waits for approval, and there is no terminal to ask on; "
                   "`dayfly approve %s` applies the plan, `dayfly discard %s` drops it "
                   "(--auto-approve applies without asking)",
                   run, run, run);
}

/* Prints the summary and returns the exit code. --detailed-exitcode as in tofu: 2 for a plan with
 * changes. */
static int conclude(struct df_cli *cli, const cJSON *run, const char *note, struct df_err *err)
{
    int code = df_summary_print(cli, run, note, err);
    bool detailed = df_arg_given(&cli->args, "detailed-exitcode");
    return code == DF_EXIT_OK && detailed && df_json_bool(run, "status.hasChanges", true)
               ? DF_EXIT_PLAN_CHANGES
               : code;
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
    return cli->left ? DF_EXIT_INTERRUPTED : conclude(cli, doc, view->note, err);
}

/* --detach: prints the run and returns. An embedded service stays until the run needs it no
 * more. */
static int leave(struct df_cli *cli, const char *name, const cJSON *run, struct df_err *err)
{
    if (!wants_document(cli))
        return df_cli_printf(err, "run/%s created\n", name);
    return df_summary_print(cli, run, "", err) < 0 ? -1 : DF_EXIT_OK;
}

int df_request_run(struct df_cli *cli, const char *executor, const char *what, const cJSON *body,
                   int signals_fd, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, what, NULL);
    DF_JSON cJSON *run = NULL;
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

static int fail_keep_file(struct df_err *err)
{
    return df_fail(err, DF_ERR_USER,
                   "--keep keeps no .tfvars file, and no value in HCL (write it as JSON): put "
                   "the file into the source and name it in spec.variableFiles");
}

/* --keep: stores the variables of this run in the executor. */
static int keep(struct df_cli *cli, const char *executor, const cJSON *body, struct df_err *err)
{
    const cJSON *variables = df_json_at(body, "variables");
    bool changed = false;
    if (!df_arg_given(&cli->args, "keep"))
        return 0;
    if (df_json_at(body, "secrets.files"))
        return fail_keep_file(err);
    if (df_executor_keep(cli, executor, variables, &changed, err) < 0)
        return df_err_wrap(err, "--keep");
    if (changed)
        df_cli_note("executor %s changed: the variables of this run are kept", executor);
    return 0;
}

static int check_keep(const struct df_args *args, const cJSON *body, struct df_err *err)
{
    if (!df_arg_given(args, "keep"))
        return 0;
    if (df_streq(df_json_str(body, "action"), "dry-run"))
        return df_fail(err, DF_ERR_USER,
                       "--keep changes the executor, a dry-run does not: use `dayfly set`");
    if (df_variables_have_file(body))
        return fail_keep_file(err);
    if (!df_arg_given(args, "var") && !df_arg_given(args, "var-file"))
        return df_fail(err, DF_ERR_USER, "--keep needs --var or --var-file");
    return 0;
}

/* Gives the variables their values and keeps them, moves sealed ones into the request's secrets,
 * and adds those of the shell. */
static int add_secrets(struct df_cli *cli, const char *name, cJSON *body, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    DF_JSON cJSON *executor = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &executor, err) < 0 ||
        df_sealing_settle(cli, executor, body, err) < 0 || keep(cli, name, body, err) < 0 ||
        df_sealing_add(cli, executor, body, err) < 0)
        return -1;
    return df_caller_add(cli, executor, body, err);
}

int df_request_state_run(struct df_cli *cli, const char *executor, cJSON *body, int signals_fd,
                         struct df_err *err)
{
    if (df_variables_read(&cli->args, body, err) < 0 || df_cli_connect(cli, err) < 0 ||
        df_caller_check(cli, err) < 0 || add_secrets(cli, executor, body, err) < 0)
        return -1;
    return df_request_run(cli, executor, "runs", body, signals_fd, err);
}

/* Why a destroy of this executor has nothing to do; NULL: it may have. executor: NULL: there is
 * none. */
static const char *why_nothing(const cJSON *executor)
{
    struct df_err refused = {0};
    if (!executor)
        return "was never applied: there is no such executor";
    if (df_executor_is_busy(executor) ||
        df_executor_check_action(executor, DF_ACTION_DESTROY, DF_VERBS_ADMIN, &refused) == 0)
        return NULL;
    return df_streq(df_json_str(executor, "status.state"), "destroyed") ? "is destroyed already"
                                                                        : "was never applied";
}

static int say_nothing(struct df_cli *cli, const char *name, const char *why, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL, *none = cJSON_CreateNull();
    if (!none)
        return df_fail_oom(err);
    df_cli_note("nothing to destroy: %s %s", name, why);
    if (!wants_document(cli))
        return 0;
    return df_summary_document(none, NULL, NULL, &doc, err) < 0 ? -1
                                                                : df_cli_print_json(cli, doc, err);
}

/* A script that cleans up destroys without knowing whether there is something. *ret_over: there is
 * nothing, which was said. */
static int check_destroy(struct df_cli *cli, const char *name, const cJSON *body, bool *ret_over,
                         struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (!df_streq(df_json_str(body, "action"), df_action_name(DF_ACTION_DESTROY)))
        return 0;
    if (df_module_get_executor(cli, name, &executor, err) < 0)
        return -1;
    const char *why = why_nothing(executor);
    *ret_over = why != NULL;
    return why ? say_nothing(cli, name, why, err) : 0;
}

static int run_module(struct df_cli *cli, const char *action, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_SECRET_JSON cJSON *body = NULL;
    DF_FREE char *executor = NULL;
    bool is_over = false;
    if (request_of(&cli->args, &body, err) < 0 ||
        df_json_add_str(body, "action", action, err) < 0 || check_keep(&cli->args, body, err) < 0 ||
        df_signals_open(&signals_fd, err) < 0)
        return -1;
    if (df_cli_connect_as(cli, DF_CONNECT_WORK, err) < 0 || df_caller_check(cli, err) < 0 ||
        df_module_executor(cli, body, &executor, err) < 0 ||
        check_destroy(cli, executor, body, &is_over, err) < 0)
        return -1;
    if (is_over)
        return DF_EXIT_OK;
    if (add_secrets(cli, executor, body, err) < 0)
        return -1;
    return df_request_run(cli, executor, "runs", body, signals_fd, err);
}

int df_cmd_run(struct df_cli *cli, struct df_err *err)
{
    const char *action = df_arg(&cli->args, "action");
    return run_module(cli, action ? action : "provision", err);
}

int df_cmd_plan(struct df_cli *cli, struct df_err *err)
{
    if (df_arg_given(&cli->args, "detach") && df_arg_given(&cli->args, "detailed-exitcode"))
        return df_fail(
            err, DF_ERR_USER,
            "--detach and --detailed-exitcode exclude each other: a run that is left has "
            "no plan yet");
    return run_module(cli, "dry-run", err);
}

int df_cmd_destroy(struct df_cli *cli, struct df_err *err)
{
    return run_module(cli, "destroy", err);
}

int df_cmd_recreate(struct df_cli *cli, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_SECRET_JSON cJSON *body = NULL;
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 ||
        request_of(&cli->args, &body, err) < 0 || df_signals_open(&signals_fd, err) < 0 ||
        df_cli_connect_as(cli, DF_CONNECT_WORK, err) < 0 || df_caller_check(cli, err) < 0 ||
        add_secrets(cli, executor, body, err) < 0)
        return -1;
    return df_request_run(cli, executor, "recreate", body, signals_fd, err);
}
