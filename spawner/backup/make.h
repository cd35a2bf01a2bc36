/*
 * make.h - makes a backup of a service while it works, as a stream of bytes.
 *
 * First the removal of blobs is held off (store/removals.h). Then the documents are copied as they
 * are at one moment, and after that the blobs: a blob is stored before the document that names it,
 * so each that a copied document names is there, and so is every state that was acknowledged
 * before. Blobs may be newer than the documents; restore.h deals with that. Format: format.h.
 * Thread rule: one backup, one thread at a time.
 */
#ifndef DF_BACKUP_MAKE_H
#define DF_BACKUP_MAKE_H

#include "spawner/spawner.h"

struct df_backup; /* opaque */

/* Copies the documents. CONFLICT BackupElsewhere: they are in a cluster. s is borrowed until the
 * end. */
int df_backup_begin(struct df_spawner *s, bool with_key, struct df_backup **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Appends the next bytes, at most 128 KiB, to out. *ret_more: false after the last ones. */
int df_backup_next(struct df_backup *b, struct df_buf *out, bool *ret_more,
                   struct df_err *err) DF_MUST_CHECK;

void df_backup_end(struct df_backup *b); /* NULL is fine */

#endif
