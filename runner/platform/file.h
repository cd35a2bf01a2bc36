/*
 * file.h - files that are mounted: a person may have mounted anything. Thread rule: any thread.
 */
#ifndef DF_PLATFORM_FILE_H
#define DF_PLATFORM_FILE_H

#include "common/base/buf.h"

/* df_fs_read() of a regular file, or of a link to one. Class USER for all else: a pipe would wait
 * for its writer for ever. */
int df_file_read(const char *path, struct df_buf *ret, struct df_err *err) DF_MUST_CHECK;

#endif
