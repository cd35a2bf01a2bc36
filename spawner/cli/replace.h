/*
 * replace.h - documents as `get -o yaml` prints them, on their way back: without what belongs to
 * the service, and with the version that they were read at. Thread rule: main thread.
 */
#ifndef DF_CLI_REPLACE_H
#define DF_CLI_REPLACE_H

#include "spawner/cli/cli.h"

/* A copy without the status that a service made, the metadata that the service sets, and its own
 * labels and annotations. keep_version: metadata.resourceVersion stays. The caller deletes it. */
int df_client_part(const cJSON *doc, bool keep_version, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Puts doc in the place of old, which is stored at path now. A document with a resourceVersion is
 * refused when that is not the newest (CONFLICT Conflict) unless nothing would change; one without
 * replaces whatever there is. */
int df_replace_document(struct df_cli *cli, const char *path, const cJSON *old, const cJSON *doc,
                        bool *ret_changed, struct df_err *err) DF_MUST_CHECK;

#endif
