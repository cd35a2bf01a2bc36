/*
 * read.h - reads a backup from its start to its end and checks every byte of it. Thread rule: any
 * thread.
 */
#ifndef DF_BACKUP_READ_H
#define DF_BACKUP_READ_H

#include "common/json/json.h"

/* Where the members go. */
struct df_backup_sink {
    /* Opens what the content of this member is written to; *ret_fd -1: nothing, it is only checked.
     * df_backup_read() writes the content and closes it, without a sync. */
    int (*open)(void *arg, const char *name, int *ret_fd, struct df_err *err);
    void *arg;
};

struct df_backup_facts {
    cJSON *header; /* DF_BACKUP_HEADER; the caller deletes */
    int64_t files, bytes;
};

/* Reads the archive fd (a regular file). sink NULL: checks it alone. USER BackupDamaged: it is
 * damaged, cut off or something else; USER BackupTooNew: of a newer dayfly. A sink must not trust
 * what it got before success. */
int df_backup_read(int fd, const struct df_backup_sink *sink, struct df_backup_facts *ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
