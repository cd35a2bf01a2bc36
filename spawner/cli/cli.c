#include "spawner/cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/text.h"

#define BUSY_POLL_MS 100

const struct df_option df_common_options[] = {
    {"server", 0, "URL", "a spawner service (DAYFLY_SERVER); default: the one of this machine",
     NULL},
    {"token-file", 0, "FILE", "holds the bearer token (or set DAYFLY_TOKEN)", NULL},
    {"ca-file", 0, "FILE", "PEM certificates to trust, not the system's (DAYFLY_CA_FILE)", NULL},
    {"data-directory", 0, "DIR", "of the service of this machine; default $XDG_STATE_HOME/dayfly",
     NULL},
    {"config", 0, "FILE", "configuration of that service (DAYFLY_CONFIG)", NULL},
    {"no-color", 0, NULL, "no colours (NO_COLOR)", NULL},
    {"help", 'h', NULL, "this text", NULL},
    {0}};

enum df_exit df_exit_of(const struct df_err *err)
{
    if (df_streq(err->reason, "TimedOut"))
        return DF_EXIT_TIMEOUT;
    return err->cls == DF_ERR_USER ? DF_EXIT_INPUT : DF_EXIT_FAILURE;
}

void df_cli_note(const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_LIMIT_LOG_RECORD);
    (void)df_buf_adds(&line, "dayfly: ");
    df_text_safe(&line, text, strlen(text));
    (void)df_buf_addc(&line, '\n');
    df_text_write(STDERR_FILENO, df_buf_str(&line), line.len);
}

int df_cli_print(const char *text, struct df_err *err)
{
    if (df_fs_write_all(STDOUT_FILENO, text, strlen(text), err) < 0)
        return df_err_wrap(err, "standard output");
    return 0;
}

int df_cli_print_json(const struct df_cli *cli, const cJSON *doc, struct df_err *err)
{
    bool yaml = df_streq(df_cli_output(cli), "yaml");
    DF_FREE char *text = yaml ? df_yaml_print(doc) : df_json_print_pretty(doc);
    if (!text)
        return df_fail_oom(err);
    if (df_cli_print(text, err) < 0)
        return -1;
    return yaml ? 0 : df_cli_print("\n", err);
}

int df_cli_settings(const struct df_args *args, struct df_strs *ret, struct df_err *err)
{
    const char *set = NULL, *listen = df_arg(args, "listen");
    const char *data = df_arg(args, "data-directory");
    for (size_t i = 0; (set = df_arg_nth(args, "set", i)); i++) {
        if (!strchr(set, '='))
            return df_fail(err, DF_ERR_USER, "--set \"%s\": must be key=value", set);
        (void)df_strs_add(ret, set);
    }
    if (listen)
        (void)df_strs_addf(ret, "listen=%s", listen);
    if (data)
        (void)df_strs_addf(ret, "dataDirectory=%s", data);
    return df_strs_check(ret, err);
}

const char *df_cli_output(const struct df_cli *cli)
{
    const char *format = df_arg(&cli->args, "output");
    return format ? format : "";
}

const char *df_cli_word(const struct df_cli *cli, size_t n)
{
    return n < cli->args.word_count ? cli->args.words[n] : NULL;
}

int df_cli_name(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                struct df_err *err)
{
    const char *name = df_cli_word(cli, n);
    if (!name)
        return df_fail(err, DF_ERR_USER, "which %s? see dayfly %s --help", what,
                       cli->command->name);
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER,
                       "%s \"%s\": is no name (lower-case letters, digits and -, at most 63)", what,
                       name);
    *ret = name;
    return 0;
}

int df_cli_name_or_task(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                        bool *ret_is_task, struct df_err *err)
{
    static const char prefix[] = "taskaction/";
    const char *word = df_cli_word(cli, n);
    const char *name = word && df_starts_with(word, prefix) ? word + strlen(prefix) : NULL;
    *ret_is_task = name != NULL;
    if (!name)
        return df_cli_name(cli, n, what, ret, err);
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER,
                       "taskaction \"%s\": is no name (lower-case letters, digits and -, at most "
                       "63)",
                       name);
    *ret = name;
    return 0;
}

/* ---- the server -------------------------------------------------------------------------------
 */

static const char *option_or_env(const struct df_cli *cli, const char *option, const char *env)
{
    const char *value = df_arg(&cli->args, option);
    value = value ? value : getenv(env);
    return df_str_empty(value) ? NULL : value;
}

const char *df_cli_config(const struct df_cli *cli)
{
    return option_or_env(cli, "config", "DAYFLY_CONFIG");
}

int df_cli_connect(struct df_cli *cli, struct df_err *err)
{
    const struct df_connect_options o = {
        .server = option_or_env(cli, "server", "DAYFLY_SERVER"),
        .token_file = df_arg(&cli->args, "token-file"),
        .ca_file = option_or_env(cli, "ca-file", "DAYFLY_CA_FILE"),
        .data_directory = df_arg(&cli->args, "data-directory"),
        .config = df_cli_config(cli),
    };
    if (df_connection_open(&o, &cli->server, err) < 0)
        return -1;
    cli->client = df_connection_client(cli->server);
    return 0;
}

int df_cli_reconnect(struct df_cli *cli, struct df_err *err)
{
    if (df_connection_again(cli->server, err) < 0)
        return -1;
    cli->client = df_connection_client(cli->server);
    return 0;
}

int df_cli_call(struct df_cli *cli, const char *method, const char *path, const cJSON *body,
                cJSON **ret, struct df_err *err)
{
    char key[37];
    if (df_uuid(key, err) < 0)
        return -1;
    if (!cli->client && df_cli_connect(cli, err) < 0)
        return -1;
    if (df_client_call(cli->client, method, path, body, key, ret, err) == 0)
        return 0;
    struct df_err ignored;
    if (err->cls != DF_ERR_RETRY || df_cli_reconnect(cli, &ignored) < 0)
        return -1;
    return df_client_call(cli->client, method, path, body, key, ret, err);
}

/* Other commands may wait for steps that report to the service in this process. */
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

static void disconnect(struct df_cli *cli)
{
    if (!cli->server)
        return;
    if (cli->left && df_connection_place(cli->server) == DF_PLACE_EMBEDDED)
        _exit(DF_EXIT_INTERRUPTED);
    stay_while_busy(cli);
    df_connection_close(cli->server, false);
    cli->server = NULL;
    cli->client = NULL;
}

/* ---- finding the command ----------------------------------------------------------------------
 */

static size_t words_in(const char *name)
{
    return strchr(name, ' ') ? 2 : 1;
}

static bool is_named(const struct df_command *c, char *const *words, size_t count)
{
    size_t first = strcspn(c->name, " ");
    if (count < words_in(c->name) || strlen(words[0]) != first ||
        strncmp(c->name, words[0], first) != 0)
        return false;
    return !c->name[first] || df_streq(c->name + first + 1, words[1]);
}

const struct df_command *df_cli_find(char *const *words, size_t count)
{
    for (const struct df_command *c = df_commands; c->name; c++)
        if (is_named(c, words, count))
            return c;
    return NULL;
}

/* "state" alone, or "state lst": names the second words there are. */
static int incomplete(const char *first, const char *second, struct df_err *err)
{
    DF_BUF struct df_buf known = DF_BUF_INIT(DF_KIB);
    const char *best = NULL;
    size_t n = strlen(first), distance = SIZE_MAX;
    for (const struct df_command *c = df_commands; c->name; c++) {
        if (!df_starts_with(c->name, first) || c->name[n] != ' ')
            continue;
        (void)df_buf_addf(&known, "%s%s", known.len ? ", " : "", c->name + n + 1);
        df_nearest(second ? second : "", c->name + n + 1, &best, &distance);
    }
    if (!known.len)
        return 0;
    if (second && best)
        return df_fail(err, DF_ERR_USER, "unknown command \"%s %s\"; did you mean \"%s %s\"?",
                       first, second, first, best);
    return df_fail(err, DF_ERR_USER, "dayfly %s: one of %s is needed behind it", first,
                   df_buf_str(&known));
}

int df_cli_unknown(char *const *words, size_t count, struct df_err *err)
{
    if (incomplete(words[0], count > 1 ? words[1] : NULL, err) < 0)
        return -1;
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (const struct df_command *c = df_commands; c->name; c++)
        df_nearest(words[0], c->name, &best, &distance);
    if (best)
        return df_fail(err, DF_ERR_USER, "unknown command \"%s\"; did you mean \"%s\"?", words[0],
                       best);
    return df_fail(err, DF_ERR_USER, "unknown command \"%s\"; `dayfly help` lists them", words[0]);
}

/* ---- running it -------------------------------------------------------------------------------
 */

static int show_help(struct df_cli *cli, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    if ((cli->command ? df_cli_help(cli->command, &text, err) : df_cli_overview(&text, err)) < 0)
        return -1;
    return df_cli_print(df_buf_str(&text), err);
}

static int check_words(const struct df_cli *cli, struct df_err *err)
{
    const struct df_command *c = cli->command;
    if (cli->args.word_count < c->min_words)
        return df_fail(err, DF_ERR_USER, "usage: dayfly %s %s", c->name, c->synopsis);
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

/* The command's own arguments: everything behind its name, which stands in argv[0] then. */
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
    cli->command = df_cli_find(words, count);
    if (!cli->command)
        return df_cli_unknown(words, count, err);
    size_t skip = words_in(cli->command->name) - 1;
    return run_command(cli, (int)(count - skip), words + skip, err);
}

int df_cli_main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(2), not our death */
    df_log_setup(DF_LOG_ERROR, false, "dayfly");
    struct df_cli cli = {0};
    struct df_err err = {0};
    int code = find_and_run(&cli, argc, argv, &err);
    disconnect(&cli);
    df_args_free(&cli.args);
    if (code >= 0)
        return code;
    if (err.os_errno != EPIPE)
        df_cli_note("%s", err.message);
    return (int)df_exit_of(&err);
}
