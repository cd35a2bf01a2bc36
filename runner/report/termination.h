/*
 * termination.h - the result of a step as the termination message of its container: what the
 * cluster keeps when the spawner could not be told (docs/step-protocol.md).
 *
 * Kubernetes keeps 4096 bytes of it. A result that is longer loses members that explain (the
 * timeline first) and then the end of its message; it stays valid JSON with exit code and reason.
 * Thread rule: any thread.
 */
#ifndef DF_REPORT_TERMINATION_H
#define DF_REPORT_TERMINATION_H

#include "common/json/json.h"

#define DF_TERMINATION_LOG "/dev/termination-log" /* unless the pod says otherwise */
#define DF_TERMINATION_MAX ((size_t)4096)

/* The caller frees *ret, which is at most DF_TERMINATION_MAX bytes long. */
int df_termination_text(const cJSON *result, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Writes a sentence instead: for a runner that was not given its step. No secret may be in it. */
int df_termination_tell(const char *path, const char *sentence, struct df_err *err) DF_MUST_CHECK;

/* Writes it to path, a file that the kubelet has made and that cannot be replaced. */
int df_termination_write(const char *path, const cJSON *result, struct df_err *err) DF_MUST_CHECK;

#endif
