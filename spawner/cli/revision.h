/*
 * revision.h - the revisions of an executor, by number. Thread rule: main thread.
 */
#ifndef DF_CLI_REVISION_H
#define DF_CLI_REVISION_H

#include "spawner/cli/kinds.h"

/* The number in a word of the command line. */
int df_revision_number(const char *word, int64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* *ret: the revision, which the caller deletes. NOT_FOUND says which command lists those that
 * there are. */
int df_revision_fetch(struct df_cli *cli, const char *executor, int64_t number, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Gives the executor the spec of this revision, as its next one. */
int df_revision_return(struct df_cli *cli, const char *executor, const char *number,
                       struct df_err *err) DF_MUST_CHECK;

#endif
