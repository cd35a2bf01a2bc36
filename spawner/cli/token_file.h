/*
 * token_file.h - the service's token file, as the commands change it.
 * Thread rule: main thread.
 */
#ifndef DF_CLI_TOKEN_FILE_H
#define DF_CLI_TOKEN_FILE_H

#include "common/base/err.h"

/* Adds a line to the token file in one piece, or makes the file (0600). Class CONFLICT if the name
 * has a token there already. */
int df_token_file_add(const char *path, const char *name, const char *line,
                      struct df_err *err) DF_MUST_CHECK;

#endif
