/*
 * replace.h - sends documents back that `get -o yaml` printed: without the members that belong to
 * the service, and with the version that was read. Thread rule: main thread.
 */
#ifndef DF_CLI_REPLACE_H
#define DF_CLI_REPLACE_H

#include "spawner/cli/cli.h"

/* A copy without the service's status, warnings, metadata, labels and annotations. keep_version:
 * with metadata.resourceVersion. The caller deletes it. */
int df_client_part(const cJSON *doc, bool keep_version, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Replaces old, the document stored at path, by doc. If doc has a resourceVersion that is not the
 * newest, it fails with CONFLICT Conflict, unless nothing would change. A document without a
 * resourceVersion replaces any version. *ret: as it is stored now; for the caller to delete. Tells
 * the service's warnings. */
int df_replace_document(struct df_cli *cli, const char *path, const cJSON *old, const cJSON *doc,
                        bool *ret_changed, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Prints a line for each of the warnings with which the service answered. */
void df_tell_warnings(const cJSON *answer);

#endif
