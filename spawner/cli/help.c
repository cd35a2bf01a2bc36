#include "common/base/limits.h"
#include "spawner/cli/commands.h"

static void add_indented(struct df_buf *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        (void)df_buf_addf(out, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

int df_cli_help(const struct df_command *c, struct df_buf *out, struct df_err *err)
{
    (void)df_buf_addf(out, "%s\n\nUsage: dayfly %s%s%s\n", c->summary, c->name,
                      *c->synopsis ? " " : "", c->synopsis);
    if (c->details)
        (void)df_buf_addf(out, "\n%s", c->details);
    if (c->options) {
        (void)df_buf_adds(out, "\nOptions:\n");
        df_args_help(c->options, out);
    }
    (void)df_buf_adds(out, "\nCommon options:\n");
    df_args_help(df_common_options, out);
    (void)df_buf_adds(out, "\nExamples:\n");
    add_indented(out, c->examples);
    return df_buf_check(out, err);
}

int df_cli_overview(struct df_buf *out, struct df_err *err)
{
    (void)df_buf_adds(out, "Short-lived agents for OpenTofu and Terraform.\n\n"
                           "Usage: dayfly COMMAND [options]\n\nCommands:\n");
    for (const struct df_command *c = df_commands; c->name; c++)
        (void)df_buf_addf(out, "  %-20s%s\n", c->name, c->summary);
    (void)df_buf_adds(out, "\nCommon options:\n");
    df_args_help(df_common_options, out);
    (void)df_buf_adds(
        out, "\nExit codes: 0 done, 1 failed or declined, 2 partly applied, 3 bad input, 4 timed "
             "out.\n`dayfly help COMMAND` shows its options and examples.\n");
    return df_buf_check(out, err);
}

int df_cmd_help(struct df_cli *cli, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    const struct df_command *c = df_cli_find(cli->args.words, cli->args.word_count);
    if (cli->args.word_count && !c)
        return df_cli_unknown(cli->args.words, cli->args.word_count, err);
    if ((c ? df_cli_help(c, &text, err) : df_cli_overview(&text, err)) < 0)
        return -1;
    return df_cli_print(df_buf_str(&text), err);
}
