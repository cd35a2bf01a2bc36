/*
 * placement_merge.h - merges two placements; for spawner/engine only. Thread rule: pure functions.
 */
#ifndef DF_PLACEMENT_MERGE_H
#define DF_PLACEMENT_MERGE_H

#include "common/json/json.h"

/* Merges over into target, field by field as docs/placement.md says; over has priority and may be
 * NULL. A podTemplate of target becomes a list. After a failure target is partly merged. */
int df_placement_merge(cJSON *target, const cJSON *over, struct df_err *err) DF_MUST_CHECK;

#endif
