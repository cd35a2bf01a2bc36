/*
 * state_file.h - the new file that takes a state before it is deleted here. Thread rule: main
 * thread.
 */
#ifndef DF_CLI_STATE_FILE_H
#define DF_CLI_STATE_FILE_H

#include "common/base/err.h"

/* Creates the file for its owner alone; the caller closes *ret_fd. USER if it exists or cannot be
 * made: the message says that nothing was deleted. */
int df_copy_create(const char *path, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

#endif
