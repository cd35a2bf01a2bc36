/* backup.h - opens the file of a backup. Thread rule: any thread. */
#ifndef DF_CLI_BACKUP_H
#define DF_CLI_BACKUP_H

#include "common/base/err.h"

/* The caller closes *ret_fd. */
int df_backup_open_file(const char *path, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

#endif
