/*
 * args.h - the command line as tables: what a command takes, checked, explained and completed from
 * one place.
 *
 * A long option is spelled in full: a script that says --auto must not change its meaning when a
 * second option with these letters comes. It may have one dash, too, as tofu writes it:
 * -auto-approve, -var x=1, -var=x=1, -refresh=false. Letters may be joined where that cannot be
 * taken for a long option: -fw for flags, -ojson for words that the option knows, -o=json.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_ARGS_H
#define DF_CLI_ARGS_H

#include "common/base/buf.h"
#include "common/base/nearest.h"

struct df_option {
    const char *name;  /* long name, without dashes; NULL ends a table */
    char letter;       /* its short form, or 0 */
    const char *value; /* what its value is called in the help; NULL: a flag without value */
    const char *help;
    const char *words; /* the values that are accepted, separated by '|'; NULL: any */
};

struct df_arg {
    const struct df_option *option; /* borrowed */
    const char *value;              /* borrowed from argv; NULL for a flag */
};

struct df_args {
    struct df_arg *given; /* owned; in the order of the command line */
    size_t given_count;
    char **words; /* what is no option; borrowed from argv */
    size_t word_count;
};

#define DF_ARGS DF_CLEANUP(df_args_free)
void df_args_free(struct df_args *a);

enum df_args_mode {
    DF_ARGS_LEADING, /* stop at the first word, which is the command */
    DF_ARGS_ALL      /* options and words may be mixed; "--" ends the options */
};

/* Reads argv[1..] against both tables (own may be NULL) and adds what was given to args. argv is
 * reordered: words to its front. Class USER: unknown option (the nearest known one is named, or
 * our way to do what tofu has it for), missing value, a value that is not among the option's words.
 */
int df_args_parse(int argc, char **argv, const struct df_option *own,
                  const struct df_option *common, enum df_args_mode mode, struct df_args *args,
                  struct df_err *err) DF_MUST_CHECK;

/* The last value given for this option, or NULL. */
const char *df_arg(const struct df_args *a, const char *name);
bool df_arg_given(const struct df_args *a, const char *name);
/* The values of an option that may be repeated: NULL after the last. */
const char *df_arg_nth(const struct df_args *a, const char *name, size_t n);

/* Is value one of "a|b|c"? */
bool df_args_word(const char *words, const char *value);

/* One line for each option, aligned, for --help. */
void df_args_help(const struct df_option *options, struct df_buf *out);

#endif
