/*
 * termination.h - the result of a step as the termination message of its container: the cluster
 * keeps it when the spawner cannot be reached (docs/step-protocol.md).
 *
 * Kubernetes keeps 4096 bytes. A longer result loses optional members (the timeline first) and then
 * the end of its message; it stays valid JSON with exit code and reason.
 * Thread rule: any thread.
 */
#ifndef DF_REPORT_TERMINATION_H
#define DF_REPORT_TERMINATION_H

#include "common/json/json.h"

#define DF_TERMINATION_LOG "/dev/termination-log" /* the default of Kubernetes */
#define DF_TERMINATION_MAX ((size_t)4096)

/* The caller frees *ret, which is at most DF_TERMINATION_MAX bytes long. */
int df_termination_text(const cJSON *result, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Writes a sentence instead of a result, for a runner that did not get its step. The sentence must
 * contain no secret. */
int df_termination_write_text(const char *path, const char *sentence,
                              struct df_err *err) DF_MUST_CHECK;

/* Writes the result to path, a file that the kubelet made and that cannot be replaced. */
int df_termination_write(const char *path, const cJSON *result, struct df_err *err) DF_MUST_CHECK;

#endif
