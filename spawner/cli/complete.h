/*
 * complete.h - what may come next on a command line that is being typed.
 *
 * A shell's script calls `dayfly __complete WORD...`: the words behind the program, up to the one
 * under the cursor, which may be empty. The answer is a line for each way to go on, with a tab and
 * a remark where there is one, and a last line that says what else fits: `:files`, `:dirs` or
 * `:none`. Commands, options and their values come from the table in commands.c, kinds of words
 * from the synopsis there, names from the service that runs; none is started, and a service that
 * is silent ends the answer early. Thread rule: main thread.
 */
#ifndef DF_CLI_COMPLETE_H
#define DF_CLI_COMPLETE_H

#include "spawner/cli/cli.h"

#define DF_COMPLETE_WORD "__complete"

/* Prints the answer. Never an error: what is not known is not offered. */
void df_complete(struct df_cli *cli, char **words, size_t count);

#endif
