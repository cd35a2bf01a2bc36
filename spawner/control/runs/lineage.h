/*
 * lineage.h - one executor for each state, also where places cannot be compared: a link, a second
 * name of a host, the backend of a module.
 *
 * The steps of executors whose state dayfly does not store report the lineage that they found. It
 * becomes the executor's own (status.stateLineage) before an apply starts, or at the end of the
 * apply that made the state, and is forgotten with a destroy. An executor that holds resources from
 * a time before that takes it over with its next plan. Thread rule: any thread.
 */
#ifndef DF_CONTROL_LINEAGE_H
#define DF_CONTROL_LINEAGE_H

#include "spawner/model/run.h"
#include "spawner/spawner.h"

/* v, verdict: of the pass, before it acts. Makes the lineage the executor's own if the run may
 * change the state or changed it. CONFLICT StateBelongsToAnother: it is that of another executor.
 * CONFLICT StateRefused: the executor has another one. */
int df_lineage_settle(struct df_spawner *s, const struct df_run_view *v,
                      const struct df_run_verdict *verdict, struct df_err *err) DF_MUST_CHECK;

#endif
