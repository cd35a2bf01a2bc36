#include "spawner/cli/args.h"

#include <getopt.h>

#define MAX_OPTIONS 48 /* of one command and the common ones together */
#define LONG_ONLY 256  /* getopt's values of options without a letter start here */

/* Both tables as getopt wants them. */
struct tables {
    const struct df_option *by_index[MAX_OPTIONS];
    struct option longs[MAX_OPTIONS + 1];
    char shorts[2 * MAX_OPTIONS + 3];
    size_t count;
};

void df_args_free(struct df_args *a)
{
    free(a->given);
    *a = (struct df_args){0};
}

static void add_table(struct tables *t, const struct df_option *options)
{
    for (const struct df_option *o = options; o && o->name; o++) {
        if (t->count == MAX_OPTIONS)
            DF_BUG("more than %d options", MAX_OPTIONS);
        int val = o->letter ? o->letter : LONG_ONLY + (int)t->count;
        t->longs[t->count] =
            (struct option){.name = o->name, .has_arg = o->value != NULL, .val = val};
        t->by_index[t->count++] = o;
        size_t end = strlen(t->shorts);
        if (o->letter)
            (void)snprintf(t->shorts + end, sizeof(t->shorts) - end, "%c%s", o->letter,
                           o->value ? ":" : "");
    }
}

static const struct df_option *option_of(const struct tables *t, int val)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->longs[i].val == val)
            return t->by_index[i];
    return NULL;
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

/* The name in "--name=value" as typed, within 63 characters. */
static void typed_name(const char *arg, char out[64])
{
    const char *name = arg + strspn(arg, "-");
    (void)snprintf(out, 64, "%.*s", (int)strcspn(name, "="), name);
}

static int unknown_option(const struct tables *t, const char *arg, struct df_err *err)
{
    char name[64];
    typed_name(arg, name);
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < t->count; i++)
        df_nearest(name, t->by_index[i]->name, &best, &distance);
    if (best)
        return df_fail(err, DF_ERR_USER, "unknown option --%s; did you mean --%s?", name, best);
    return df_fail(err, DF_ERR_USER, "unknown option --%s; --help lists them", name);
}

static int refused(const struct tables *t, char **argv, bool missing_value, struct df_err *err)
{
    const struct df_option *o = optopt ? option_of(t, optopt) : NULL;
    if (missing_value && o)
        return df_fail(err, DF_ERR_USER, "option --%s needs a value: %s", o->name, o->value);
    if (o)
        return df_fail(err, DF_ERR_USER, "option --%s takes no value", o->name);
    if (optopt)
        return df_fail(err, DF_ERR_USER, "unknown option -%c; --help lists them", optopt);
    return unknown_option(t, argv[optind - 1], err);
}

/* The element of argv in which a long option was written. */
static const char *element_of(const struct df_option *o, char **argv)
{
    bool apart = o->value && optarg == argv[optind - 1];
    return argv[optind - 1 - apart];
}

/* getopt_long accepts any unambiguous beginning of a name; see the header for why we do not. */
static bool is_abbreviated(const struct df_option *o, char **argv)
{
    char name[64];
    typed_name(element_of(o, argv), name);
    return !df_streq(name, o->name);
}

static int add_given(struct df_args *args, const struct df_option *o, const char *value,
                     struct df_err *err)
{
    if (o->words && value && !df_args_word(o->words, value))
        return df_fail(err, DF_ERR_USER, "--%s \"%s\": is none of %s", o->name, value, o->words);
    struct df_arg *more = reallocarray(args->given, args->given_count + 1, sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    args->given = more;
    args->given[args->given_count++] = (struct df_arg){o, value};
    return 0;
}

int df_args_parse(int argc, char **argv, const struct df_option *own,
                  const struct df_option *common, enum df_args_mode mode, struct df_args *args,
                  struct df_err *err)
{
    struct tables t = {0};
    (void)snprintf(t.shorts, sizeof(t.shorts), "%s", mode == DF_ARGS_LEADING ? "+:" : ":");
    add_table(&t, own);
    add_table(&t, common);
    optind = 0;
    opterr = 0;
    for (;;) {
        int index = -1; /* stays so for a short option */
        int c = getopt_long(argc, argv, t.shorts, t.longs, &index);
        if (c == -1)
            break;
        if (c == '?' || c == ':')
            return refused(&t, argv, c == ':', err);
        const struct df_option *o = option_of(&t, c);
        if (index >= 0 && is_abbreviated(o, argv))
            return unknown_option(&t, element_of(o, argv), err);
        if (add_given(args, o, o->value ? optarg : NULL, err) < 0)
            return -1;
    }
    args->words = argv + optind;
    args->word_count = (size_t)(argc - optind);
    return 0;
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
