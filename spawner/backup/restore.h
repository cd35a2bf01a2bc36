/*
 * restore.h - makes a data directory of a backup.
 *
 * Everything is written below <directory>/restoring and checked there, and moved to its place at
 * the end. As long as that directory exists no service starts on it (df_restore_check_finished), so
 * that a killed restore cannot be taken for an installation; a repeated restore begins again.
 *
 * What was under way when the backup was made is canceled: nobody knows what it did afterwards, and
 * a plan that was applied after the backup must not be applied twice. Thread rule: one thread.
 */
#ifndef DF_BACKUP_RESTORE_H
#define DF_BACKUP_RESTORE_H

#include "spawner/backup/read.h"

struct df_restored {
    cJSON *header;    /* of the backup; the caller deletes */
    int64_t canceled; /* runs and workflows */
    bool has_key;     /* false: the key file must be put there before a service starts */
};

/* Checks the archive first, before anything is written. Failures as of df_backup_read(); CONFLICT
 * NotEmpty: the directory has something in it, or a process works on it. */
int df_restore(int archive, const char *directory, struct df_restored *ret,
               struct df_err *err) DF_MUST_CHECK;

/* CONFLICT RestoreUnfinished. */
int df_restore_check_finished(const char *directory, struct df_err *err) DF_MUST_CHECK;

#endif
