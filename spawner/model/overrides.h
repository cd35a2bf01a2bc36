/*
 * overrides.h - what a dry-run says instead of its executor: another reference or folder of the
 * same source, another tool. Only the run sees it. Thread rule: pure functions, any thread.
 */
#ifndef DF_OVERRIDES_H
#define DF_OVERRIDES_H

#include "spawner/model/model.h"

/* Lays the run's source and runtime over those of spec, which is a copy of the executor's. */
int df_overrides_merge(cJSON *spec, const cJSON *run, struct df_err *err) DF_MUST_CHECK;

/* Would the executor be a valid one with them? Class USER, reason InvalidDocument, when not. */
int df_overrides_check(const cJSON *run, const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

#endif
