/*
 * hold_directory.h - one process at a time has a data directory. It is locked as long as this one
 * lives, and the lock file says who that is, also after it was killed.
 */
#ifndef DF_HOLD_DIRECTORY_H
#define DF_HOLD_DIRECTORY_H

#include "common/base/err.h"

/* Makes the directory (0700) and locks it; *ret_fd is for df_release_directory(). Notes an end
 * without a stop of the process before. endpoint_file: where that process has its URL, for the
 * message. CONFLICT reason Busy: another process holds it. */
int df_hold_directory(const char *path, const char *endpoint_file, int *ret_fd,
                      struct df_err *err) DF_MUST_CHECK;
void df_release_directory(int fd); /* -1 is fine */

#endif
