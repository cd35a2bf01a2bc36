#include "spawner/cli/help.h"

#include "common/base/limits.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/lookup.h"
#include "spawner/cli/man.h"

/* "  NAME   SUMMARY" in two columns: the first is as wide as the longest name of all commands. */
static void add_summary(const struct df_command *commands, const struct df_command *c,
                        struct df_buf *out)
{
    size_t widest = 0;
    for (const struct df_command *o = commands; o->name; o++)
        widest = strlen(o->name) > widest ? strlen(o->name) : widest;
    (void)df_buf_addf(out, "  %-*s  %s\n", (int)widest, c->name, c->summary);
}

static void add_indented(struct df_buf *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        (void)df_buf_addf(out, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static bool has_option(const struct df_option *options, const char *name)
{
    for (const struct df_option *o = options; o && o->name; o++)
        if (df_streq(o->name, name))
            return true;
    return false;
}

/* Adds the common options, except those that the command defines itself. */
static void add_common(const struct df_option *own, struct df_buf *out)
{
    for (const struct df_option *o = df_common_options; o->name; o++) {
        const struct df_option one[] = {*o, {0}};
        if (!has_option(own, o->name))
            df_args_help(one, out);
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
    add_common(c->options, out);
    (void)df_buf_adds(out, "\nExamples:\n");
    add_indented(out, c->examples);
    return df_buf_check(out, err);
}

int df_cli_overview(const struct df_command *commands, struct df_buf *out, struct df_err *err)
{
    (void)df_buf_adds(out, "Short-lived runners for OpenTofu and Terraform.\n\n"
                           "Usage: dayfly COMMAND [options]\n\nCommands:\n");
    for (const struct df_command *c = commands; c->name; c++)
        add_summary(commands, c, out);
    (void)df_buf_adds(out, "\nCommon options:\n");
    df_args_help(df_common_options, out);
    (void)df_buf_adds(out, "\nExit codes:");
    for (const struct df_exit_code *x = df_exit_codes; x->meaning; x++)
        (void)df_buf_addf(out, "%s %d %s", x == df_exit_codes ? "" : ",", x->code, x->meaning);
    (void)df_buf_adds(out, ".\n`dayfly help COMMAND` shows its options and examples.\n");
    return df_buf_check(out, err);
}

int df_cli_group_help(const struct df_command *commands, const char *word, struct df_buf *out,
                      struct df_err *err)
{
    size_t n = strlen(word);
    (void)df_buf_addf(out, "Usage: dayfly %s COMMAND [options]\n\nCommands:\n", word);
    for (const struct df_command *c = commands; c->name; c++)
        if (df_starts_with(c->name, word) && c->name[n] == ' ')
            add_summary(commands, c, out);
    (void)df_buf_addf(out, "\n`dayfly help %s COMMAND` shows its options and examples.\n", word);
    return df_buf_check(out, err);
}

int df_cmd_help(struct df_cli *cli, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    const char *pages = df_arg(&cli->args, "man");
    if (pages)
        return df_cli_man(cli->commands, pages, err);
    const struct df_command *c =
        df_command_find(cli->commands, cli->args.words, cli->args.word_count);
    const char *group = cli->args.word_count == 1 && !c ? cli->args.words[0] : NULL;
    if (cli->args.word_count && !c && !(group && df_command_is_group(cli->commands, group)))
        return df_command_unknown(cli->commands, cli->args.words, cli->args.word_count, err);
    if ((c       ? df_cli_help(c, &text, err)
         : group ? df_cli_group_help(cli->commands, group, &text, err)
                 : df_cli_overview(cli->commands, &text, err)) < 0)
        return -1;
    return df_cli_print(df_buf_str(&text), err);
}
