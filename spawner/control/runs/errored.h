/*
 * errored.h - a run, and the errored states that its executor keeps. Thread rule: the pass over the
 * Run.
 */
#ifndef DF_CONTROL_ERRORED_H
#define DF_CONTROL_ERRORED_H

#include "spawner/model/run.h"
#include "spawner/spawner.h"

/* If *executor names an errored state, whose removal may not have been noted: replaces it by the
 * stored one, which names those that are kept now; by NULL if it was deleted. */
int df_errored_observe(struct df_spawner *s, const char *name, const cJSON **executor,
                       struct df_err *err) DF_MUST_CHECK;

/* Before a run that may have written ends without success, so that no later one starts: looks as
 * above, and says it in the verdict's message if the run left one and its runner did not tell. */
int df_errored_settle(struct df_spawner *s, const cJSON *run, const cJSON **executor,
                      struct df_run_verdict *v, struct df_err *err) DF_MUST_CHECK;

#endif
