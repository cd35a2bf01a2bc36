/* mirror_check.h - compares packages of providers with lock files. Thread rule: one thread. */
#ifndef DF_CLI_MIRROR_CHECK_H
#define DF_CLI_MIRROR_CHECK_H

#include "spawner/cli/mirror/mirror_store.h"

/* Compares the archive below root with the lock file: its SHA-256 with "zh:", else its content,
 * which the tool reads, with "h1:". NOT_FOUND: there is no such archive. DENIED: it is none of
 * those that were locked. */
int df_mirror_check(const char *tool, const struct df_mirror_store *s, const char *root,
                    const struct df_mirror_package *p, int64_t *ret_size,
                    struct df_err *err) DF_MUST_CHECK;

#endif
