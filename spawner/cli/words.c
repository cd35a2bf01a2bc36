#include "spawner/cli/cli.h"

#include "common/base/parse.h"
#include "spawner/cli/kinds.h"

const char *df_cli_word(const struct df_cli *cli, size_t n)
{
    return n < cli->args.word_count ? cli->args.words[n] : NULL;
}

static int check_name(const char *name, const char *what, struct df_err *err)
{
    if (df_is_dns_label(name))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "%s \"%s\": is not a valid name (lower-case letters, digits and -, at most 63)",
                   what, name);
}

/* *ret: the kind before the slash of "kind/name"; NULL if there is no slash. */
static int kind_of(const char *word, const struct df_shown **ret, struct df_err *err)
{
    const char *slash = strchr(word, '/');
    *ret = NULL;
    if (!slash)
        return 0;
    DF_FREE char *typed = strndup(word, (size_t)(slash - word));
    return typed ? df_shown_find(typed, ret, err) : df_fail_oom(err);
}

int df_cli_name(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                struct df_err *err)
{
    bool is_task = false;
    if (df_cli_name_or_task(cli, n, what, ret, &is_task, err) < 0)
        return -1;
    if (!is_task)
        return 0;
    return df_fail(err, DF_ERR_USER, "\"%s\": dayfly %s takes no taskaction, but %s NAME",
                   df_cli_word(cli, n), cli->command->name, what);
}

int df_cli_name_or_task(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                        bool *ret_is_task, struct df_err *err)
{
    const char *word = df_cli_word(cli, n);
    if (!word)
        return df_fail(err, DF_ERR_USER, "which %s? see dayfly %s --help", what,
                       cli->command->name);
    return df_cli_name_in(cli, word, what, ret, ret_is_task, err);
}

int df_cli_name_in(const struct df_cli *cli, const char *word, const char *what, const char **ret,
                   bool *ret_is_task, struct df_err *err)
{
    const struct df_shown *kind = NULL;
    if (kind_of(word, &kind, err) < 0)
        return -1;
    *ret_is_task = kind && df_streq(kind->singular, "taskaction");
    if (kind && !*ret_is_task && !df_streq(kind->singular, what))
        return df_fail(err, DF_ERR_USER, "\"%s\": dayfly %s takes no %s, but %s NAME", word,
                       cli->command->name, kind->singular, what);
    *ret = kind ? strchr(word, '/') + 1 : word;
    return check_name(*ret, *ret_is_task ? "taskaction" : what, err);
}
