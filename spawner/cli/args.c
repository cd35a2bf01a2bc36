/*
 * The parser of the command line: one pass over the words, an option table of the command and one
 * that all commands share. Read df_args_parse(), then read_option() and read_letters().
 */
#include "spawner/cli/args.h"

#include "spawner/cli/foreign.h"

/* The state of the parser. */
struct reader {
    const struct df_option *tables[2]; /* of the command, and of all; either may be NULL */
    char **argv;
    int argc;
    int next; /* index of the next element */
    struct df_args *args;
};

void df_args_free(struct df_args *a)
{
    free(a->given);
    *a = (struct df_args){0};
}

bool df_args_word(const char *words, const char *value)
{
    size_t n = strlen(value);
    for (const char *w = words; *w; w += *w == '|') {
        size_t len = strcspn(w, "|");
        if (len == n && strncmp(w, value, n) == 0)
            return true;
        w += len;
    }
    return false;
}

/* The option of this name (n bytes), or, with name == NULL, of this letter; NULL for none. */
static const struct df_option *find(const struct reader *r, const char *name, size_t n, char letter)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(r->tables); i++)
        for (const struct df_option *o = r->tables[i]; o && o->name; o++)
            if (name ? strlen(o->name) == n && strncmp(o->name, name, n) == 0
                     : letter && o->letter == letter)
                return o;
    return NULL;
}

/* element: the option as typed, with one dash or two. 0: it asks for something that dayfly always
 * does (foreign.h). */
static int unknown_option(const struct reader *r, const char *element, struct df_err *err)
{
    const char *name = element + strspn(element, "-"), *best = NULL;
    size_t distance = SIZE_MAX;
    int answered = df_foreign_option(name, err);
    if (answered <= 0)
        return answered;
    char typed[64];
    (void)snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(name, "="), name);
    for (size_t i = 0; i < DF_ARRAY_SIZE(r->tables); i++)
        for (const struct df_option *o = r->tables[i]; o && o->name; o++)
            df_nearest(typed, o->name, &best, &distance);
    int dashes = (int)(name - element);
    if (best)
        return df_fail(err, DF_ERR_USER, "unknown option %.*s%s; did you mean --%s?", dashes,
                       element, typed, best);
    return df_fail(err, DF_ERR_USER, "unknown option %.*s%s; --help lists them", dashes, element,
                   typed);
}

static int add_given(struct df_args *args, const struct df_option *o, const char *value,
                     struct df_err *err)
{
    if (o->words && value && !df_args_word(o->words, value))
        return df_fail(err, DF_ERR_USER, "--%s \"%s\": is not one of %s", o->name, value, o->words);
    struct df_arg *more = reallocarray(args->given, args->given_count + 1, sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    args->given = more;
    args->given[args->given_count++] = (struct df_arg){o, value};
    return 0;
}

/* A flag may be written as in Go programs: "-auto-approve=true"; with "=false" it is not given. */
static int add_flag(struct reader *r, const struct df_option *o, const char *value,
                    struct df_err *err)
{
    if (!value || df_streq(value, "true"))
        return add_given(r->args, o, NULL, err);
    if (df_streq(value, "false"))
        return 0;
    return df_fail(err, DF_ERR_USER, "option --%s takes no value", o->name);
}

/* value: the text after "=", or NULL: then the next element is the value, if o takes one. */
static int add_option(struct reader *r, const struct df_option *o, const char *value,
                      struct df_err *err)
{
    if (!o->value)
        return add_flag(r, o, value, err);
    if (!value && r->next == r->argc)
        return df_fail(err, DF_ERR_USER, "option --%s needs a value: %s", o->name, o->value);
    return add_given(r->args, o, value ? value : r->argv[r->next++], err);
}

/* True if each letter is a flag: "-fw". */
static bool are_flags(const struct reader *r, const char *letters)
{
    for (; *letters; letters++) {
        const struct df_option *o = find(r, NULL, 0, *letters);
        if (!o || o->value)
            return false;
    }
    return true;
}

/* Reads "-o", "-o=json", "-ojson" if json is a word of the option, or "-fw". Returns 1 for anything
 * else: "-no-colour" must not be read as -n with the value "o-colour". */
static int read_letters(struct reader *r, const char *letters, struct df_err *err)
{
    const struct df_option *o = find(r, NULL, 0, *letters);
    if (o && !letters[1])
        return add_option(r, o, NULL, err);
    if (o && letters[1] == '=')
        return add_option(r, o, letters + 2, err);
    if (o && o->words && df_args_word(o->words, letters + 1))
        return add_option(r, o, letters + 1, err);
    if (!are_flags(r, letters))
        return 1;
    for (; *letters; letters++)
        if (add_option(r, find(r, NULL, 0, *letters), NULL, err) < 0)
            return -1;
    return 0;
}

static int read_option(struct reader *r, const char *element, struct df_err *err)
{
    bool one_dash = element[1] != '-';
    const char *name = element + (one_dash ? 1 : 2), *equals = strchr(name, '=');
    const struct df_option *o = find(r, name, strcspn(name, "="), '\0');
    if (o)
        return add_option(r, o, equals ? equals + 1 : NULL, err);
    int result = one_dash ? read_letters(r, name, err) : 1;
    return result == 1 ? unknown_option(r, element, err) : result;
}

/* Moves the words to the front of argv, over the options that have been read. */
static int read_all(struct reader *r, enum df_args_mode mode, struct df_err *err)
{
    bool ended = false;
    r->args->words = r->argv + 1;
    while (r->next < r->argc) {
        char *element = r->argv[r->next++];
        if (!ended && df_streq(element, "--"))
            ended = true;
        else if (!ended && element[0] == '-' && element[1]) {
            if (read_option(r, element, err) < 0)
                return -1;
        } else if (mode == DF_ARGS_LEADING) {
            r->args->words = r->argv + r->next - 1;
            r->args->word_count = (size_t)r->argc - (size_t)r->next + 1;
            return 0;
        } else {
            r->args->words[r->args->word_count++] = element;
        }
    }
    return 0;
}

int df_args_parse(int argc, char **argv, const struct df_option *own,
                  const struct df_option *common, enum df_args_mode mode, struct df_args *args,
                  struct df_err *err)
{
    struct reader r = {
        .tables = {own, common}, .argv = argv, .argc = argc, .next = 1, .args = args};
    args->word_count = 0;
    return read_all(&r, mode, err);
}

const char *df_arg(const struct df_args *a, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < a->given_count; i++)
        if (df_streq(a->given[i].option->name, name))
            value = a->given[i].value;
    return value;
}

bool df_arg_given(const struct df_args *a, const char *name)
{
    for (size_t i = 0; i < a->given_count; i++)
        if (df_streq(a->given[i].option->name, name))
            return true;
    return false;
}

const char *df_arg_nth(const struct df_args *a, const char *name, size_t n)
{
    for (size_t i = 0; i < a->given_count; i++)
        if (df_streq(a->given[i].option->name, name) && n-- == 0)
            return a->given[i].value;
    return NULL;
}

#define HELP_COLUMN 28

void df_args_help(const struct df_option *options, struct df_buf *out)
{
    for (const struct df_option *o = options; o && o->name; o++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
                       o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
                       o->value ? " " : "", o->value ? o->value : "");
        (void)df_buf_addf(out, "  %-*s%s%s\n", HELP_COLUMN, left,
                          strlen(left) >= HELP_COLUMN ? " " : "", o->help);
    }
}
