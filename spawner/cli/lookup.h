/*
 * lookup.h - finds a command in the table by the words of a command line. commands: the table,
 * which ends with a name of NULL. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_LOOKUP_H
#define DF_CLI_LOOKUP_H

#include "spawner/cli/cli.h"

/* The command that these words begin with, or NULL. */
const struct df_command *df_command_find(const struct df_command *commands, char *const *words,
                                         size_t count);

/* How many words this name of a command has: 1 or 2. */
size_t df_command_words(const char *name);

/* True if commands of two words begin with this word ("state"). */
bool df_command_is_group(const struct df_command *commands, const char *word);

/* Fails with class USER; the message names the command that was probably meant. count >= 1. */
int df_command_unknown(const struct df_command *commands, char *const *words, size_t count,
                       struct df_err *err);

#endif
