/*
 * tmpdir.h - where the temporary files of a step lie: a path short enough for a provider's socket.
 *
 * A provider plugin listens on <TMPDIR>/plugin-dir<10 digits>/plugin<10 digits>, and the name of a
 * Unix socket has at most 107 bytes. Below a home directory's state directory that is soon too
 * much, and the provider ends before it says a word. Thread rule: any thread.
 */
#ifndef DF_TMPDIR_H
#define DF_TMPDIR_H

#include "common/base/err.h"

/* <work_dir>/tmp, or where that is too long /tmp/dayfly-<16 hex of work_dir's SHA-256>: the same
 * for everybody who asks. work_dir: absolute. The caller frees *ret. Makes nothing. */
int df_tmpdir_path(const char *work_dir, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Makes it anew, empty and with mode 0700; fails if somebody else's is there. As above. */
int df_tmpdir_make(const char *work_dir, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Absent is success. */
int df_tmpdir_remove(const char *work_dir, struct df_err *err) DF_MUST_CHECK;

#endif
