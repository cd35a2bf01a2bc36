/*
 * workload.h - whether a Deployment, StatefulSet, DaemonSet or Job is as it shall be. Thread rule:
 * main thread.
 */
#ifndef DF_PLATFORM_WORKLOAD_H
#define DF_PLATFORM_WORKLOAD_H

#include "runner/platform/platform.h"

/* NULL: false. */
bool df_workload_is_kind(const char *kind);

/* Of the object as the API server has it: all replicas of the newest generation are ready; a Job
 * has succeeded. min: so many ready replicas are enough; -1: all. why (of size): what is
 * missing. */
bool df_workload_is_ready(const cJSON *live, int64_t min, char *why, size_t size);

/* Appends the selector of its pods, as a query has it; nothing if it has none, which would be every
 * pod of the namespace. */
int df_workload_selector(const cJSON *live, struct df_buf *to, struct df_err *err) DF_MUST_CHECK;

#endif
