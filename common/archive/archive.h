/*
 * archive.h - unpacks tar (plain, gzip, zstd) and zip from strangers, below one directory and
 * nowhere else.
 *
 * Only regular files, directories and symbolic links that stay inside are made; everything else
 * (absolute names, "..", links that leave, hard links, devices, fifos, sockets, setuid bits, NUL or
 * control bytes in names, names that differ only by case from one before) is refused with reason
 * SourceRefused and the entry's name. Caps are those of limits.h. Entries are made relative to a
 * directory descriptor and no link is ever followed while unpacking. After a failure the directory
 * is empty again. Thread rule: any thread.
 */
#ifndef DF_ARCHIVE_H
#define DF_ARCHIVE_H

#include "common/base/err.h"

struct df_archive_limits {
    int64_t max_bytes; /* unpacked */
    int64_t max_entries;
};

/* Unpacks fd (seekable, from its start) into the existing, empty directory. strip_top: when
 * everything lies under one top directory, that level is left out. */
int df_archive_unpack(int fd, const char *directory, bool strip_top,
                      const struct df_archive_limits *limits, struct df_err *err) DF_MUST_CHECK;

/* Unpacks the one regular file with this name to path (mode 0755). For tool zips. NOT_FOUND when it
 * is not inside. */
int df_archive_unpack_one(int fd, const char *name, const char *path, int64_t max_bytes,
                          struct df_err *err) DF_MUST_CHECK;

#endif
