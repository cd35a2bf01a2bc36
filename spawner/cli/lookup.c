#include "spawner/cli/lookup.h"

#include "spawner/cli/foreign.h"

size_t df_command_words(const char *name)
{
    return strchr(name, ' ') ? 2 : 1;
}

static bool is_named(const struct df_command *c, char *const *words, size_t count)
{
    size_t first = strcspn(c->name, " ");
    if (count < df_command_words(c->name) || strlen(words[0]) != first ||
        strncmp(c->name, words[0], first) != 0)
        return false;
    return !c->name[first] || df_streq(c->name + first + 1, words[1]);
}

const struct df_command *df_command_find(const struct df_command *commands, char *const *words,
                                         size_t count)
{
    for (const struct df_command *c = commands; c->name; c++)
        if (is_named(c, words, count))
            return c;
    return NULL;
}

/* Fails for "state" alone and for "state lst"; the message names the possible second words. */
static int incomplete(const struct df_command *commands, const char *first, const char *second,
                      struct df_err *err)
{
    DF_BUF struct df_buf known = DF_BUF_INIT(DF_KIB);
    const char *best = NULL;
    size_t n = strlen(first), distance = SIZE_MAX;
    for (const struct df_command *c = commands; c->name; c++) {
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
    return df_fail(err, DF_ERR_USER, "dayfly %s needs one of: %s", first, df_buf_str(&known));
}

int df_command_unknown(const struct df_command *commands, char *const *words, size_t count,
                       struct df_err *err)
{
    if (incomplete(commands, words[0], count > 1 ? words[1] : NULL, err) < 0 ||
        df_foreign_command(words, count, err) < 0)
        return -1;
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (const struct df_command *c = commands; c->name; c++)
        df_nearest(words[0], c->name, &best, &distance);
    if (best)
        return df_fail(err, DF_ERR_USER, "unknown command \"%s\"; did you mean \"%s\"?", words[0],
                       best);
    return df_fail(err, DF_ERR_USER, "unknown command \"%s\"; `dayfly help` lists them", words[0]);
}

bool df_command_is_group(const struct df_command *commands, const char *word)
{
    size_t n = strlen(word);
    for (const struct df_command *c = commands; c->name; c++)
        if (df_starts_with(c->name, word) && c->name[n] == ' ')
            return true;
    return false;
}
