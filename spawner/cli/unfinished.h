/*
 * unfinished.h - a file that gets its name when it is complete. Until then it is PATH.part-XXXXXX,
 * which SIGINT, SIGTERM and SIGHUP remove before they end this process; what a killed one left is
 * removed by the next. Thread rule: main thread, before other threads start.
 */
#ifndef DF_CLI_UNFINISHED_H
#define DF_CLI_UNFINISHED_H

#include "common/base/err.h"

struct df_unfinished; /* opaque */

/* Creates the unfinished file with mode 0600. Blocks the three signals until df_unfinished_free().
 * CONFLICT if PATH exists. */
int df_unfinished_new(const char *path, struct df_unfinished **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* For reading and writing; borrowed. */
int df_unfinished_fd(const struct df_unfinished *u);

/* Gives the file its name, durably; it never replaces one (CONFLICT). */
int df_unfinished_publish(struct df_unfinished *u, struct df_err *err) DF_MUST_CHECK;

/* Removes the unfinished file. NULL is fine. */
void df_unfinished_free(struct df_unfinished *u);
static inline void df_cleanup_unfinished(struct df_unfinished **u)
{
    df_unfinished_free(*u);
}
#define DF_UNFINISHED DF_CLEANUP(df_cleanup_unfinished)

#endif
