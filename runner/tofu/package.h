/*
 * package.h - the checksum "h1:" of an unpacked provider package, as lock files record it.
 *
 * h1 is the SHA-256 over the lines "<SHA-256 of a file>  <its name>" in the order of the names
 * (golang.org/x/mod/sumdb/dirhash, Hash1), in base64. Thread rule: any thread, any number of
 * processes.
 */
#ifndef DF_TOFU_PACKAGE_H
#define DF_TOFU_PACKAGE_H

#include "common/base/err.h"

#define DF_PACKAGE_H1 48 /* "h1:", 44 characters and the NUL */

/* Computes it. Class USER for anything but files and directories. */
int df_package_digest(const char *directory, char ret[DF_PACKAGE_H1],
                      struct df_err *err) DF_MUST_CHECK;

/* The same from the record <directory>.h1, which holds the checksum and a digest of the files' names,
 * sizes, inodes and times of change: a package of hundreds of megabytes costs a few lstat(2). Without
 * a record, or if the package was changed after it, computes and records it; a record that cannot be
 * written costs the next caller the same. */
int df_package_recall(const char *directory, char ret[DF_PACKAGE_H1],
                      struct df_err *err) DF_MUST_CHECK;

/* Syncs each file: who then renames the directory publishes what is on the disk. */
int df_package_sync(const char *directory, struct df_err *err) DF_MUST_CHECK;

#endif
