/*
 * run_results.h - copies the results of the steps of a run into its status: the list of steps, what
 * the plan found out, what the apply did, the message. Thread rule: the pass over the run; the run
 * is changed in memory.
 */
#ifndef DF_CONTROL_RUN_RESULTS_H
#define DF_CONTROL_RUN_RESULTS_H

#include "spawner/model/run.h"

/* view: of this run, as observed. */
int df_run_results_copy(const struct df_run_view *view, cJSON *run,
                        struct df_err *err) DF_MUST_CHECK;

#endif
