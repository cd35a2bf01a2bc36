/* backup.h - what backup and restore share. Thread rule: any thread. */
#ifndef DF_CLI_BACKUP_H
#define DF_CLI_BACKUP_H

#include "common/json/json.h"

/* The caller closes *ret_fd. */
int df_backup_open_file(const char *path, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* Appends a line that names the executors whose states are not in a backup; nothing if there are
 * none. header: of the archive. */
void df_backup_add_elsewhere(const cJSON *header, struct df_buf *out);

#endif
