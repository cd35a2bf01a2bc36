/*
 * The program `dayfly`: finds the command, parses its options, runs it, and closes the connection.
 * Read df_cli_main() at the end first, then the functions above it in reverse order.
 */
#include "spawner/cli/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "common/base/fatal.h"
#include "common/base/log.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/complete.h"
#include "spawner/cli/foreign.h"
#include "spawner/cli/help.h"
#include "spawner/cli/lookup.h"
#include "spawner/cli/signals.h"

#define BUSY_POLL_MS 100

/* ---- help ---- */

static int show_help(struct df_cli *cli, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    if ((cli->command ? df_cli_help(cli->command, &text, err)
                      : df_cli_overview(cli->commands, &text, err)) < 0)
        return -1;
    return df_cli_print(df_buf_str(&text), err);
}

/* True for "state --help" and the like. */
static bool asks_for_group(const struct df_cli *cli, char *const *words, size_t count)
{
    return count == 2 && df_command_is_group(cli->commands, words[0]) &&
           (df_streq(words[1], "--help") || df_streq(words[1], "-h") || df_streq(words[1], "help"));
}

static int show_group(const struct df_cli *cli, const char *word, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    if (df_cli_group_help(cli->commands, word, &text, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&text), err);
}

/* ---- leaving ---- */

/* Keeps this process while its embedded service is needed: steps report to it, and other commands
 * may wait for them. */
static void stay_while_busy(struct df_cli *cli)
{
    DF_FREE char *run = NULL;
    if (!df_connection_busy(cli->server, &run))
        return;
    df_cli_note("staying until %s has ended its step, which reports to this process; Ctrl-C leaves "
                "it to the next dayfly command",
                run ? run : "another run");
    (void)fflush(NULL);
    df_signals_release();
    while (df_connection_busy(cli->server, NULL))
        (void)poll(NULL, 0, BUSY_POLL_MS);
}

/* Closes the connection at the end of a command. */
static void leave(struct df_cli *cli)
{
    if (!cli->server)
        return;
    if (cli->left && df_connection_kind(cli->server) == DF_SERVICE_EMBEDDED)
        _exit(DF_EXIT_INTERRUPTED);
    stay_while_busy(cli);
    df_cli_disconnect(cli);
}

/* ---- running it ---- */

static int check_words(const struct df_cli *cli, struct df_err *err)
{
    const struct df_command *c = cli->command;
    bool takes_directory = df_starts_with(c->synopsis, "DIR|");
    if (cli->args.word_count < c->min_words)
        return df_fail(err, DF_ERR_USER, "usage: dayfly %s %s%s", c->name, c->synopsis,
                       takes_directory ? " (. is the directory you are in)" : "");
    if (cli->args.word_count > c->max_words &&
        df_foreign_words(c->name, cli->args.words, cli->args.word_count, err) < 0)
        return -1;
    if (cli->args.word_count > c->max_words)
        return df_fail(err, DF_ERR_USER, "\"%s\" is one word too many; usage: dayfly %s %s",
                       cli->args.words[c->max_words], c->name, c->synopsis);
    return 0;
}

static void look_around(struct df_cli *cli)
{
    const char *term = getenv("TERM");
    cli->in_tty = isatty(STDIN_FILENO);
    cli->out_tty = isatty(STDOUT_FILENO);
    cli->err_tty = isatty(STDERR_FILENO);
    cli->color = (cli->out_tty || cli->err_tty) && df_str_empty(getenv("NO_COLOR")) &&
                 !df_streq(term, "dumb") && !df_arg_given(&cli->args, "no-color");
}

/* argv[0]: the last word of the command's name; its arguments follow. */
static int run_command(struct df_cli *cli, int argc, char **argv, struct df_err *err)
{
    if (df_args_parse(argc, argv, cli->command->options, df_common_options, DF_ARGS_ALL, &cli->args,
                      err) < 0)
        return -1;
    if (df_arg_given(&cli->args, "help"))
        return show_help(cli, err);
    if (check_words(cli, err) < 0 || df_http_global_init(err) < 0)
        return -1;
    look_around(cli);
    return cli->command->run(cli, err);
}

static int find_and_run(struct df_cli *cli, int argc, char **argv, struct df_err *err)
{
    if (argc > 1 && df_streq(argv[1], DF_COMPLETE_WORD)) {
        df_complete(cli, argv + 2, (size_t)argc - 2);
        return DF_EXIT_OK;
    }
    static const struct df_option version_too[] = {{"version", 0, NULL, "", NULL}, {0}};
    if (df_args_parse(argc, argv, version_too, df_common_options, DF_ARGS_LEADING, &cli->args,
                      err) < 0)
        return -1;
    char *version_word[] = {(char[]){"version"}, NULL};
    char **words = cli->args.words;
    size_t count = cli->args.word_count;
    if (df_arg_given(&cli->args, "version")) {
        words = version_word;
        count = 1;
    }
    if (!count || df_arg_given(&cli->args, "help"))
        return show_help(cli, err) < 0 ? -1 : DF_EXIT_OK;
    cli->command = df_command_find(cli->commands, words, count);
    if (!cli->command && asks_for_group(cli, words, count))
        return show_group(cli, words[0], err);
    if (!cli->command)
        return df_command_unknown(cli->commands, words, count, err);
    size_t skip = df_command_words(cli->command->name) - 1;
    return run_command(cli, (int)(count - skip), words + skip, err);
}

int df_cli_main(int argc, char **argv)
{
    df_fatal_catch();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(2) */
    df_log_setup(DF_LOG_ERROR, false, "dayfly");
    struct df_cli cli = {.commands = df_commands};
    struct df_err err = {0};
    int code = find_and_run(&cli, argc, argv, &err);
    leave(&cli);
    df_args_free(&cli.args);
    if (code >= 0)
        return code;
    if (err.os_errno != EPIPE)
        df_cli_note("%s", err.message);
    return (int)df_exit_of(&err);
}
