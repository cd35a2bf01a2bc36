/*
 * args.h - parses the command line. A table describes the options of a command; parser, --help and
 * completion use the same tables.
 *
 * A long option must be written in full: if --auto were accepted for --auto-approve, a script would
 * break when a second option with this beginning is added. A long option may have one dash, as in
 * tofu: -auto-approve, -var x=1, -var=x=1, -refresh=false. Short options may be joined if that
 * cannot be mistaken for a long option: -fw for flags, -ojson for words of the option, -o=json.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_ARGS_H
#define DF_CLI_ARGS_H

#include "common/base/buf.h"
#include "common/base/nearest.h"

struct df_option {
    const char *name;  /* long name, without dashes; NULL ends a table */
    char letter;       /* its short form, or 0 */
    const char *value; /* name of its value in the help; NULL: a flag without value */
    const char *help;
    const char *words; /* the accepted values, separated by '|'; NULL: any */
};

struct df_arg {
    const struct df_option *option; /* borrowed */
    const char *value;              /* borrowed from argv; NULL for a flag */
};

struct df_args {
    struct df_arg *given; /* owned; in the order of the command line */
    size_t given_count;
    char **words; /* arguments that are no options; borrowed from argv */
    size_t word_count;
};

#define DF_ARGS DF_CLEANUP(df_args_free)
void df_args_free(struct df_args *a);

enum df_args_mode {
    DF_ARGS_LEADING, /* stop at the first word: it is the command */
    DF_ARGS_ALL      /* options and words may be mixed; "--" ends the options */
};

/* Parses argv[1..] with both tables (own may be NULL) and adds options and words to args. Reorders
 * argv: words move to its front. Class USER: an unknown option (the message names the nearest known
 * one, or what dayfly has instead of an option of tofu), a missing value, or a value that is not
 * among the option's words. */
int df_args_parse(int argc, char **argv, const struct df_option *own,
                  const struct df_option *common, enum df_args_mode mode, struct df_args *args,
                  struct df_err *err) DF_MUST_CHECK;

/* The last value given for this option, or NULL. */
const char *df_arg(const struct df_args *a, const char *name);
bool df_arg_given(const struct df_args *a, const char *name);
/* The values of an option that may be repeated: NULL after the last. */
const char *df_arg_nth(const struct df_args *a, const char *name, size_t n);

/* True if value is one of "a|b|c". */
bool df_args_word(const char *words, const char *value);

/* One line for each option, aligned, for --help. */
void df_args_help(const struct df_option *options, struct df_buf *out);

#endif
