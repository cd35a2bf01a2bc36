/*
 * man.h - generates the manual pages from the same table as --help. Thread rule: main thread.
 */
#ifndef DF_CLI_MAN_H
#define DF_CLI_MAN_H

#include "spawner/cli/cli.h"

/* Writes dayfly.1, and dayfly-COMMAND.1 for every command, into the directory; creates it. */
int df_cli_man(const struct df_command *commands, const char *directory,
               struct df_err *err) DF_MUST_CHECK;

#endif
