/*
 * named.h - resolves what the command line names: kinds, KIND NAME, kind/name, or a name alone,
 * which is looked up. Thread rule: main thread.
 */
#ifndef DF_CLI_NAMED_H
#define DF_CLI_NAMED_H

#include "spawner/cli/kinds.h"

struct df_named {
    const struct df_shown *kind;
    const char *name; /* borrowed from the words; NULL: all of the kind */
};

/* Parses these words: `all`, KIND[,KIND], KIND NAME..., kind/name..., NAME... The caller frees
 * *ret. Class USER for an unknown kind, and for a name that both an executor and a run have. */
int df_named_parse(struct df_cli *cli, char *const *words, size_t count, struct df_named **ret,
                   size_t *ret_count, struct df_err *err) DF_MUST_CHECK;

/* The name in "taskaction/NAME", however the kind is written; NULL: the word is no such pair, or
 * the name is empty.
 * Borrowed from the word. */
const char *df_named_task(const char *word);

/* The run that a word names: NAME or run/NAME, or the latest run of an executor (NAME or
 * executor/NAME). The caller frees. NOT_FOUND if the executor has no run; USER for the
 * name of a TaskAction. */
int df_named_run(struct df_cli *cli, const char *word, char **ret,
                 struct df_err *err) DF_MUST_CHECK;

#endif
