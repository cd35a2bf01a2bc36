/*
 * archive.h - unpacks untrusted tar (plain, gzip, zstd) and zip archives below one directory.
 *
 * It creates regular files, directories and symbolic links that stay inside. Everything else
 * (absolute names, "..", links that lead outside, hard links, devices, fifos, sockets, setuid bits,
 * NUL or control bytes in names, names that differ only by case) is refused with reason
 * SourceRefused and the entry's name. Caps are in limits.h. Entries are created relative to a
 * directory descriptor, and no link is followed while unpacking. After a failure the directory is
 * empty again. Thread rule: any thread.
 */
#ifndef DF_ARCHIVE_H
#define DF_ARCHIVE_H

#include "common/base/err.h"

struct df_archive_limits {
    int64_t max_bytes; /* unpacked */
    int64_t max_entries;
};

/* Unpacks fd (seekable, from its start) into the existing, empty directory. strip_top: removes the
 * top level if it is one directory. */
int df_archive_unpack(int fd, const char *directory, bool strip_top,
                      const struct df_archive_limits *limits, struct df_err *err) DF_MUST_CHECK;

/* Unpacks the regular file of this name to path (mode 0755), for tool zips. NOT_FOUND if the
 * archive has none. */
int df_archive_unpack_one(int fd, const char *name, const char *path, int64_t max_bytes,
                          struct df_err *err) DF_MUST_CHECK;

#endif
