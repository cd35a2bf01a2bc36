/* dayfly completion: scripts for bash, zsh and fish, made from the tables of the commands. */
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

#define SCRIPT_MAX (256 * DF_KIB)

/* "a|b|c" as "a b c". */
static void add_words(struct df_buf *out, const char *words)
{
    for (const char *c = words; *c; c++)
        (void)df_buf_addc(out, *c == '|' ? ' ' : *c);
}

static bool is_second_word(const struct df_command *c)
{
    return strchr(c->name, ' ') != NULL;
}

/* "run serve state secret": each first word once. */
static void add_first_words(struct df_buf *out)
{
    const char *before = "";
    for (const struct df_command *c = df_commands; c->name; c++) {
        size_t n = strcspn(c->name, " ");
        if (strlen(before) == n && strncmp(before, c->name, n) == 0)
            continue;
        (void)df_buf_addf(out, "%s%.*s", out->len ? " " : "", (int)n, c->name);
        before = is_second_word(c) ? strndupa(c->name, n) : "";
    }
}

/* ---- bash -------------------------------------------------------------------------------------
 */

static void add_bash_options(struct df_buf *out, const struct df_option *options)
{
    for (const struct df_option *o = options; o && o->name; o++)
        (void)df_buf_addf(out, " --%s", o->name);
}

static void add_bash_values(struct df_buf *out, const struct df_command *c)
{
    for (const struct df_option *o = c->options; o && o->name; o++) {
        if (!o->words)
            continue;
        (void)df_buf_addf(out, "        '%s --%s'", c->name, o->name);
        if (o->letter)
            (void)df_buf_addf(out, "|'%s -%c'", c->name, o->letter);
        (void)df_buf_adds(out, ") words='");
        add_words(out, o->words);
        (void)df_buf_adds(out, "' ;;\n");
    }
}

static void add_bash_groups(struct df_buf *out)
{
    for (const struct df_command *c = df_commands; c->name; c++) {
        if (!is_second_word(c))
            continue;
        size_t n = strcspn(c->name, " ");
        (void)df_buf_addf(out, "        %.*s) words=\"$words %s\" ;;&\n", (int)n, c->name,
                          c->name + n + 1);
    }
}

static void bash_script(struct df_buf *out)
{
    DF_BUF struct df_buf first = DF_BUF_INIT(DF_LIMIT_URL);
    add_first_words(&first);
    (void)df_buf_addf(out,
                      "# bash completion of dayfly: source <(dayfly completion bash)\n"
                      "_dayfly() {\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                      "    local one=${COMP_WORDS[1]} two=${COMP_WORDS[2]} command words=''\n"
                      "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
                      "        COMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n"
                      "        return\n"
                      "    fi\n"
                      "    if [[ $COMP_CWORD -eq 2 ]]; then\n"
                      "        case $one in\n",
                      df_buf_str(&first));
    add_bash_groups(out);
    (void)df_buf_adds(out, "        esac\n"
                           "        if [[ -n $words && $cur != -* ]]; then\n"
                           "            COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                           "            return\n"
                           "        fi\n"
                           "    fi\n"
                           "    command=$one words=''\n"
                           "    case \"$one $two\" in\n");
    for (const struct df_command *c = df_commands; c->name; c++)
        if (is_second_word(c))
            (void)df_buf_addf(out, "        '%s') command='%s' ;;\n", c->name, c->name);
    (void)df_buf_adds(out, "    esac\n"
                           "    case \"$command $prev\" in\n");
    for (const struct df_command *c = df_commands; c->name; c++)
        add_bash_values(out, c);
    (void)df_buf_adds(out, "    esac\n"
                           "    if [[ -z $words && $cur == -* ]]; then\n"
                           "        case $command in\n");
    for (const struct df_command *c = df_commands; c->name; c++) {
        (void)df_buf_addf(out, "        '%s') words='", c->name);
        add_bash_options(out, c->options);
        (void)df_buf_adds(out, "' ;;\n");
    }
    (void)df_buf_adds(out, "        esac\n"
                           "        words=\"$words");
    add_bash_options(out, df_common_options);
    (void)df_buf_adds(out, "\"\n"
                           "    fi\n"
                           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                           "}\n"
                           "complete -o default -F _dayfly dayfly\n");
}

/* ---- zsh --------------------------------------------------------------------------------------
 */

/* Brackets and colons mean something to _arguments. */
static void add_zsh_text(struct df_buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (strchr("[]:\\", *c))
            (void)df_buf_addc(out, '\\');
        (void)df_buf_adds(out, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
    }
}

static void add_zsh_option(struct df_buf *out, const struct df_option *o)
{
    (void)df_buf_addf(out, " '*--%s[", o->name);
    add_zsh_text(out, o->help);
    (void)df_buf_addc(out, ']');
    if (o->value)
        (void)df_buf_addf(out, ":%s:", o->value);
    if (o->words) {
        (void)df_buf_addc(out, '(');
        add_words(out, o->words);
        (void)df_buf_addc(out, ')');
    } else if (o->value) {
        (void)df_buf_adds(out, "_files");
    }
    (void)df_buf_addc(out, '\'');
}

static void add_zsh_options(struct df_buf *out, const struct df_option *options)
{
    for (const struct df_option *o = options; o && o->name; o++)
        add_zsh_option(out, o);
}

static void zsh_script(struct df_buf *out)
{
    (void)df_buf_adds(out, "#compdef dayfly\n"
                           "# zsh completion of dayfly: source <(dayfly completion zsh)\n"
                           "_dayfly() {\n"
                           "    local -a commands common\n"
                           "    commands=(\n");
    for (const struct df_command *c = df_commands; c->name; c++) {
        (void)df_buf_addf(out, "        '%s:", c->name);
        add_zsh_text(out, c->summary);
        (void)df_buf_adds(out, "'\n");
    }
    (void)df_buf_adds(out, "    )\n    common=(");
    add_zsh_options(out, df_common_options);
    (void)df_buf_adds(out, ")\n"
                           "    if (( CURRENT == 2 )); then\n"
                           "        _describe command commands\n"
                           "        return\n"
                           "    fi\n"
                           "    case \"$words[2] $words[3]\" in\n");
    for (int second = 1; second >= 0; second--) {
        for (const struct df_command *c = df_commands; c->name; c++) {
            if (is_second_word(c) != (second == 1))
                continue;
            (void)df_buf_addf(out, "        '%s'%s) _arguments $common", c->name,
                              second ? "" : "' '*");
            add_zsh_options(out, c->options);
            (void)df_buf_adds(out, " '*:file:_files' ;;\n");
        }
    }
    (void)df_buf_adds(out, "    esac\n"
                           "}\n"
                           "if [ \"$funcstack[1]\" = _dayfly ]; then\n"
                           "    _dayfly \"$@\"\n"
                           "else\n"
                           "    compdef _dayfly dayfly\n"
                           "fi\n");
}

/* ---- fish -------------------------------------------------------------------------------------
 */

static void add_fish_options(struct df_buf *out, const char *command,
                             const struct df_option *options)
{
    size_t n = command ? strcspn(command, " ") : 0;
    for (const struct df_option *o = options; o && o->name; o++) {
        (void)df_buf_adds(out, "complete -c dayfly");
        if (command)
            (void)df_buf_addf(out, " -n '__fish_seen_subcommand_from %.*s%s%s'", (int)n, command,
                              command[n] ? "; and __fish_seen_subcommand_from" : "", command + n);
        (void)df_buf_addf(out, " -l %s", o->name);
        if (o->letter)
            (void)df_buf_addf(out, " -s %c", o->letter);
        (void)df_buf_adds(out, o->value ? " -r -d " : " -d ");
        df_text_quoted(out, o->help);
        if (o->words) {
            (void)df_buf_adds(out, " -f -a '");
            add_words(out, o->words);
            (void)df_buf_addc(out, '\'');
        }
        (void)df_buf_addc(out, '\n');
    }
}

static void add_fish_command(struct df_buf *out, const struct df_command *c)
{
    size_t n = strcspn(c->name, " ");
    if (c->name[n])
        (void)df_buf_addf(out,
                          "complete -c dayfly -n '__fish_seen_subcommand_from %.*s' -f -a '%s' -d ",
                          (int)n, c->name, c->name + n + 1);
    else
        (void)df_buf_addf(out, "complete -c dayfly -n __fish_use_subcommand -f -a '%s' -d ",
                          c->name);
    df_text_quoted(out, c->summary);
    (void)df_buf_addc(out, '\n');
    add_fish_options(out, c->name, c->options);
}

static void fish_script(struct df_buf *out)
{
    const char *before = "";
    (void)df_buf_adds(out, "# fish completion of dayfly: dayfly completion fish | source\n");
    for (const struct df_command *c = df_commands; c->name; c++) {
        size_t n = strcspn(c->name, " ");
        if (c->name[n] && strncmp(before, c->name, n + 1) != 0)
            (void)df_buf_addf(out, "complete -c dayfly -n __fish_use_subcommand -f -a '%.*s'\n",
                              (int)n, c->name);
        before = c->name;
        add_fish_command(out, c);
    }
    add_fish_options(out, NULL, df_common_options);
}

int df_cmd_completion(struct df_cli *cli, struct df_err *err)
{
    static const struct {
        const char *shell;
        void (*write)(struct df_buf *out);
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    DF_BUF struct df_buf out = DF_BUF_INIT(SCRIPT_MAX);
    for (size_t i = 0; i < DF_ARRAY_SIZE(shells); i++) {
        if (!df_streq(shells[i].shell, df_cli_word(cli, 0)))
            continue;
        shells[i].write(&out);
        return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
    }
    return df_fail(err, DF_ERR_USER, "shell \"%s\": there are bash, zsh and fish",
                   df_cli_word(cli, 0));
}
