/*
 * placement_merge.h - one placement laid over another; inside spawner/engine only.
 * Thread rule: pure functions.
 */
#ifndef DF_PLACEMENT_MERGE_H
#define DF_PLACEMENT_MERGE_H

#include "common/json/json.h"

/* Lays over (or NULL: nothing happens) over target, field by field as docs/placement.md says. A
 * podTemplate of target becomes a list. After a failure target is half merged. */
int df_placement_merge(cJSON *target, const cJSON *over, struct df_err *err) DF_MUST_CHECK;

#endif
