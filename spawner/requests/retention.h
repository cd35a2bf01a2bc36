/*
 * retention.h - removes what nobody will ask for again, so that nothing grows for ever: ended runs
 * with their steps, logs and plans, ended workflows, old versions of managed states, plans of ended
 * runs, logs and entries of the audit trail by age. The keys retention.* say how much stays, and of
 * an executor its spec.retention. Thread rule: any thread.
 *
 * What is not ended stays, and so do the newest run of an executor, the newest version of its state
 * and those that an unfinished run may have been planned from, and a document whose file somebody
 * applies again (kubectl apply, Argo CD, Flux): it would come back, and run again. While a backup
 * is made everything stays.
 */
#ifndef DF_REQUESTS_RETENTION_H
#define DF_REQUESTS_RETENTION_H

#include "spawner/spawner.h"

/* *ret: what was removed, or, with dry_run, would be: [{kind, name}], and with count for versions
 * of an executor's state {kind: State} and entries of the audit trail {kind: Audit}. The caller
 * deletes. What cannot be removed yet is left to the next time. */
int df_retention_apply(struct df_spawner *s, bool dry_run, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

#endif
