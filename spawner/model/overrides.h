/*
 * overrides.h - a dry-run may replace parts of its executor's spec: the reference or folder of the
 * source, and the tool. The executor stays unchanged. Thread rule: pure functions, any thread.
 */
#ifndef DF_OVERRIDES_H
#define DF_OVERRIDES_H

#include "spawner/model/model.h"

/* Merges the run's source and runtime into spec, a copy of the executor's spec. A commit that the
 * executor names itself gets source.anyCommit. */
int df_overrides_merge(cJSON *spec, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* Checks that the executor would be valid with them. Class USER, reason InvalidDocument. */
int df_overrides_check(const cJSON *run, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
