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

/* The same from the record <directory>.h1, which holds the checksum and a digest of the files'
 * names, sizes, inodes and times of change: a package of hundreds of megabytes costs a few
 * lstat(2). Without a record, or if the package was changed after it, computes it. *ret_recorded:
 * by its record the package is what was put there. */
int df_package_recall(const char *directory, char ret[DF_PACKAGE_H1], bool *ret_recorded,
                      struct df_err *err) DF_MUST_CHECK;

/* Makes the record of a package that is whole. One that cannot be written costs the next caller the
 * digest. */
void df_package_record(const char *directory, const char *h1);

/* Copies a package to a directory that does not exist, and syncs each file: who then renames the
 * copy publishes what is on the disk. Follows no link below from. Class USER for anything but files
 * and directories, LIMIT beyond DF_LIMIT_PACKAGE_BYTES. */
int df_package_copy(const char *from, const char *to, struct df_err *err) DF_MUST_CHECK;

#endif
