/*
 * installed.h - is a program in the cache of tools still the one that was installed there?
 *
 * Beside each program lies its record, <program>.sha256: the digest at its installation, in the
 * form of sha256sum, and the file's identity (device, inode, size, times of change) when it was
 * last compared. While the identity is the same, a step reads a few bytes; otherwise it reads the
 * whole program (115 MB: 0.1 s, or 0.4 s on a processor without instructions for SHA-256). Nobody
 * but root can change a file and keep its time of change.
 *
 * It guards against a program that was replaced, edited or damaged. The wall keeps the modules of
 * isolated steps from both files (isolation.h); who may write to the cache outside of a wall can
 * write a record as well. Thread rule: any thread, any number of processes.
 */
#ifndef DF_TOFU_INSTALLED_H
#define DF_TOFU_INSTALLED_H

#include "common/base/err.h"

/* Makes the record of a new program. */
int df_installed_note(const char *path, struct df_err *err) DF_MUST_CHECK;

/* DENIED ToolChecksum: the program is not the one of its record; the message has the file, both
 * digests and the way out. A program without a record is older than the records, and gets one.
 * Other classes: it or its record cannot be read. */
int df_installed_check(const char *path, struct df_err *err) DF_MUST_CHECK;

#endif
