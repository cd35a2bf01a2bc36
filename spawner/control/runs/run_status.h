/*
 * run_status.h - what the status of a run that has not ended says: the list of its steps, what the
 * plan found out, what the apply did, and the message, which names what the run waits for. Thread
 * rule: the pass over the run; the run is changed in memory.
 */
#ifndef DF_CONTROL_RUN_STATUS_H
#define DF_CONTROL_RUN_STATUS_H

#include "spawner/model/run.h"

/* view: of this run, as observed. */
int df_run_status_fill(const struct df_run_view *view, cJSON *run,
                       struct df_err *err) DF_MUST_CHECK;

#endif
