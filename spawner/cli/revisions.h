/*
 * revisions.h - the way back to an earlier revision. Thread rule: main thread.
 */
#ifndef DF_CLI_REVISIONS_H
#define DF_CLI_REVISIONS_H

#include "spawner/cli/cli.h"

/* Gives the executor the spec of the revision with this number, as its next one. NOT_FOUND says
 * which command lists those that there are. */
int df_revision_return(struct df_cli *cli, const char *executor, const char *number,
                       struct df_err *err) DF_MUST_CHECK;

#endif
