/*
 * complete.h - shell completion: prints the candidates for the word under the cursor.
 *
 * A shell's script calls `dayfly __complete WORD...` with the words after the program name, up to
 * the one under the cursor, which may be empty. The output has one line for each candidate,
 * optionally with a tab and a description, and a last line that says which paths fit, too:
 * `:files`, `:dirs` or `:none`. Commands, options and their values are from the table in
 * commands.c, the kinds of arguments from the synopsis there, and names from the running service.
 * Completion starts no service; if the service does not answer in time, the output ends early.
 * Thread rule: main thread.
 */
#ifndef DF_CLI_COMPLETE_H
#define DF_CLI_COMPLETE_H

#include "spawner/cli/cli.h"

#define DF_COMPLETE_WORD "__complete"

/* Prints the candidates. There are no errors: what cannot be determined is not offered. */
void df_complete(struct df_cli *cli, char **words, size_t count);

#endif
