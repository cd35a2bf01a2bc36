/*
 * copies.h - executors of one module: which sources are the same, and which executors have one.
 *
 * Two executors of one module make everything twice, so that a second one is made on request alone.
 */
#ifndef DF_CLI_COPIES_H
#define DF_CLI_COPIES_H

#include "spawner/cli/cli.h"

/* The same repository, archive or directory, and the same folder in it? Branches, tags and commits
 * make no difference. */
bool df_copies_same_source(const cJSON *a, const cJSON *b);

/* The same module: the same source, or the same directory of this machine by another path? */
bool df_copies_same_module(const cJSON *a, const cJSON *b);

/* CONFLICT if an executor has the module of this source already: names each, and the ways out. */
int df_copies_refuse(struct df_cli *cli, const cJSON *source, struct df_err *err) DF_MUST_CHECK;

#endif
