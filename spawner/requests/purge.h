/*
 * purge.h - removes documents with everything that belongs to them. What was begun and did not come
 * to its end is done by the next call. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_PURGE_H
#define DF_REQUESTS_PURGE_H

#include "spawner/spawner.h"

/* An ended step that its engine holds nothing of, with its log and plan. RETRY while it does, and
 * as df_reporter_let_go(). */
int df_purge_step(struct df_spawner *s, const cJSON *task, struct df_err *err) DF_MUST_CHECK;
/* A run that has ended, with its steps. RETRY while a step is still being cleaned up. */
int df_purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err) DF_MUST_CHECK;
/* An executor whose deletion was asked for, with its runs, steps and managed state. */
int df_purge_executor(struct df_spawner *s, const cJSON *executor,
                      struct df_err *err) DF_MUST_CHECK;

#endif
