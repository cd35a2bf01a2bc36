/*
 * tmpdir.h - the directory of a step's temporary files, with a path short enough for a provider's
 * socket.
 *
 * A provider plugin listens on <TMPDIR>/plugin-dir<10 digits>/plugin<10 digits>, and the name of a
 * Unix socket has at most 107 bytes. A path below a user's state directory easily exceeds that, and
 * the provider then ends without a message. Thread rule: any thread.
 */
#ifndef DF_TMPDIR_H
#define DF_TMPDIR_H

#include "common/base/err.h"

/* /tmp/dayfly-<uid>, which has the temporary directories of all steps with long paths. The caller
 * frees; NULL: no memory. */
char *df_tmpdir_shared(void);

/* <work_dir>/tmp, or if that is too long <shared>/<16 hex of work_dir's SHA-256>. work_dir:
 * absolute. The caller frees *ret. Creates nothing. */
int df_tmpdir_path(const char *work_dir, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Replaces it by an empty directory (0700); fails if it belongs to another user. As above. */
int df_tmpdir_make(const char *work_dir, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Success if it does not exist. */
int df_tmpdir_remove(const char *work_dir, struct df_err *err) DF_MUST_CHECK;

#endif
