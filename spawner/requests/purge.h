/*
 * purge.h - removes documents with everything that belongs to them. An interrupted removal is
 * completed by the next call. RETRY BackupRunning while a backup is made (removals.h). Thread rule:
 * any thread.
 */
#ifndef DF_REQUESTS_PURGE_H
#define DF_REQUESTS_PURGE_H

#include "spawner/spawner.h"

/* Called when all that belongs to a document is gone, before the document goes: what it writes is
 * there when somebody sees the end of the deletion. If the removal of the document fails, it is
 * called again. */
struct df_purge_note {
    void (*write)(void *arg, enum df_kind kind, const cJSON *doc);
    void *arg;
};

/* Removes an ended step with its Job, its log and its plan. RETRY while its engine still keeps
 * something of it, and as df_reporter_release(). note: NULL: none. */
int df_purge_step(struct df_spawner *s, const cJSON *task, const struct df_purge_note *note,
                  struct df_err *err) DF_MUST_CHECK;
/* Removes an ended run with its steps. RETRY while a step is still being cleaned up. note: NULL:
 * none. */
int df_purge_run(struct df_spawner *s, const cJSON *run, const struct df_purge_note *note,
                 struct df_err *err) DF_MUST_CHECK;
/* Removes an executor that is marked as deleted, with its runs, steps, revisions and managed
 * state. note: NULL: none. */
int df_purge_executor(struct df_spawner *s, const cJSON *executor, const struct df_purge_note *note,
                      struct df_err *err) DF_MUST_CHECK;

#endif
