/* value.h - reads a secret value from a file, from standard input, or from a prompt without echo.
 * Thread rule: main thread. */
#ifndef DF_CLI_VALUE_H
#define DF_CLI_VALUE_H

#include "spawner/cli/cli.h"

/* file: a path, read byte for byte; "-": standard input without its last newline; NULL: the prompt
 * on a terminal, else standard input. The caller wipes out. */
int df_value_read(const struct df_cli *cli, const char *prompt, const char *file,
                  struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
