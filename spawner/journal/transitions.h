/*
 * transitions.h - writes of TaskActions. Each new entry of the phase history becomes a line of the
 * log and a metric with its cause, once, after it is durable; a reference of the step that is not
 * written yet (memory.h) comes with the write. Thread rule: any thread.
 */
#ifndef DF_JOURNAL_TRANSITIONS_H
#define DF_JOURNAL_TRANSITIONS_H

#include "spawner/spawner.h"

/* df_store_modify() and df_store_create() of a TaskAction, with log and metric. */
int df_task_modify(struct df_spawner *s, const char *name, df_store_change change, void *arg,
                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Writes the reference that is in memory, if that was not written meanwhile. */
int df_task_write_ref(struct df_spawner *s, const char *name, struct df_err *err) DF_MUST_CHECK;
/* Exchanges *task for a document that has the reference, also if it was written since *task was
 * read. *ret_due_us: real time at which it is to be written; 0: it is not in memory. */
int df_task_show_ref(struct df_spawner *s, const cJSON **task, int64_t *ret_due_us,
                     struct df_err *err) DF_MUST_CHECK;
int df_task_create(struct df_spawner *s, const cJSON *task, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
