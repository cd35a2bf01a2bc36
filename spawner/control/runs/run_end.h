/*
 * run_end.h - the end of a run: what its status says of it, and the audit trail. Thread rule: the
 * pass over the run; the run is changed in memory.
 */
#ifndef DF_CONTROL_RUN_END_H
#define DF_CONTROL_RUN_END_H

#include "spawner/model/run.h"
#include "spawner/spawner.h"

/* Ends the run, whose phase is set. latest: its last step, or NULL. The audit trail has the end
 * before the run says it, once, also if the pass has to be repeated; that the trail cannot be
 * written is only logged. */
int df_run_end(struct df_spawner *s, cJSON *run, const struct df_run_verdict *v,
               const cJSON *latest, int64_t now_us, struct df_err *err) DF_MUST_CHECK;

#endif
