/*
 * retention.h - removes what nobody will ask for again, so that nothing grows for ever: ended runs
 * with their steps, logs and plans, ended workflows, old versions of managed states. The keys
 * retention.* say how much stays. Thread rule: any thread.
 *
 * What is not ended stays, and so do the newest run of an executor and the newest version of its
 * state, and a document whose file somebody applies again (kubectl apply, Argo CD, Flux): it would
 * come back, and run again.
 */
#ifndef DF_REQUESTS_RETENTION_H
#define DF_REQUESTS_RETENTION_H

#include "spawner/spawner.h"

/* *ret: what was removed, or, with dry_run, would be: [{kind, name}], and for versions of an
 * executor's state {kind: State, name, count}. The caller deletes. What cannot be removed yet is left to the next time. */
int df_retention_apply(struct df_spawner *s, bool dry_run, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

#endif
