/*
 * pack.h - packs a directory tree into a tar archive that df_archive_unpack() takes. Thread rule:
 * any thread.
 */
#ifndef DF_ARCHIVE_PACK_H
#define DF_ARCHIVE_PACK_H

#include "common/archive/archive.h"

/* directory: a real path; fails if a part of it is a symbolic link, which may lead to what a module
 * does not see. Appends the archive to fd: directories, regular files, symbolic links as they are,
 * and of the rest of a file's description only whether its owner may execute it. Leaves out `.git`.
 * Class LIMIT beyond the limits; USER for a device, fifo or socket. After a failure fd has a part
 * of it. */
int df_archive_pack(const char *directory, int fd, const struct df_archive_limits *limits,
                    struct df_err *err) DF_MUST_CHECK;

#endif
