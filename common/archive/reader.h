/*
 * reader.h - a restricted libarchive: tar and zip, gzip and zstd, one descriptor, and caps on
 * entries and bytes. Internal to common/archive. Thread rule: one reader, one thread.
 */
#ifndef DF_ARCHIVE_READER_H
#define DF_ARCHIVE_READER_H

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <sys/types.h>

#include "common/archive/archive.h"

enum { DF_ARCHIVE_BLOCK = 65536 };

struct df_archive_reader {
    struct archive *a;
    struct archive_entry *entry; /* the current one */
    locale_t utf8, before;       /* names are converted to the thread's locale */
    struct df_archive_limits limits;
    int fd; /* borrowed */
    off_t offset, packed;
    int64_t unpacked, entries;
    int64_t position; /* in the unpacked stream, after the latest entry */
    char block[DF_ARCHIVE_BLOCK];
};

/* Opens fd from its start. r must not move until df_archive_close(), on the same thread. */
int df_archive_open(struct df_archive_reader *r, int fd, const struct df_archive_limits *limits,
                    struct df_err *err) DF_MUST_CHECK;
void df_archive_close(struct df_archive_reader *r);

/* The next entry, borrowed until the next call, or NULL at the end. It is a directory, a regular
 * file or a symbolic link. */
int df_archive_next(struct df_archive_reader *r, struct archive_entry **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Writes the content of the current entry to a descriptor. */
int df_archive_copy(struct df_archive_reader *r, struct archive_entry *e, int to_fd,
                    struct df_err *err) DF_MUST_CHECK;

#endif
