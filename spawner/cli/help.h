/*
 * help.h - the text of --help. commands: the table, which ends with a name of NULL. Each function
 * appends to out, which has room for DF_CLI_HELP_MAX. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_HELP_H
#define DF_CLI_HELP_H

#include "spawner/cli/cli.h"

int df_cli_help(const struct df_command *command, struct df_buf *out, struct df_err *err);
int df_cli_overview(const struct df_command *commands, struct df_buf *out, struct df_err *err);
/* Lists the commands that begin with this word. */
int df_cli_group_help(const struct df_command *commands, const char *word, struct df_buf *out,
                      struct df_err *err);

#endif
