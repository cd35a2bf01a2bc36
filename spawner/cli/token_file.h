/*
 * token_file.h - adds tokens to the service's token file.
 * Thread rule: main thread.
 */
#ifndef DF_CLI_TOKEN_FILE_H
#define DF_CLI_TOKEN_FILE_H

#include "common/base/err.h"

/* Adds a line to the token file atomically, or creates the file (0600). Class CONFLICT if the file
 * already has a token of this name. */
int df_token_file_add(const char *path, const char *name, const char *line,
                      struct df_err *err) DF_MUST_CHECK;

#endif
