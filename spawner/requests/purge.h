/*
 * purge.h - removes documents with everything that belongs to them. An interrupted removal is
 * completed by the next call. RETRY BackupRunning while a backup is made (removals.h). Thread rule:
 * any thread.
 */
#ifndef DF_REQUESTS_PURGE_H
#define DF_REQUESTS_PURGE_H

#include "spawner/spawner.h"

/* Removes an ended step with its Job, its log and its plan. RETRY while its engine still keeps something of it,
 * and as df_reporter_let_go(). */
int df_purge_step(struct df_spawner *s, const cJSON *task, struct df_err *err) DF_MUST_CHECK;
/* Removes an ended run with its steps. RETRY while a step is still being cleaned up. */
int df_purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err) DF_MUST_CHECK;
/* Removes an executor that is marked as deleted, with its runs, steps and managed state. */
int df_purge_executor(struct df_spawner *s, const cJSON *executor,
                      struct df_err *err) DF_MUST_CHECK;

#endif
