/*
 * copies.h - finds executors that have the same module.
 *
 * Two executors of one module would create every resource twice. Therefore a second executor is
 * created only if the user asks for it. Thread rule: main thread.
 */
#ifndef DF_CLI_COPIES_H
#define DF_CLI_COPIES_H

#include "spawner/cli/cli.h"

/* True if both name the same repository, archive or directory, and the same folder in it. Branches,
 * tags and commits are not compared. */
bool df_copies_same_source(const cJSON *a, const cJSON *b);

/* True if both are the same source, or the same directory of this machine under two paths. */
bool df_copies_same_module(const cJSON *a, const cJSON *b);

/* CONFLICT if an executor already has the module of this source. The message names these executors
 * and the ways out. */
int df_copies_refuse(struct df_cli *cli, const cJSON *source, struct df_err *err) DF_MUST_CHECK;

#endif
