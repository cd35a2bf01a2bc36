/*
 * transitions.h - writes of TaskActions. Each new entry of the phase history becomes a line of the
 * log and a metric with its cause, once, after it is durable; a reference that is held for the step
 * (held_refs.h) comes with the write. Thread rule: any thread.
 */
#ifndef DF_JOURNAL_TRANSITIONS_H
#define DF_JOURNAL_TRANSITIONS_H

#include "spawner/spawner.h"

/* df_store_modify() and df_store_create() of a TaskAction, with log and metric. */
int df_task_modify(struct df_spawner *s, const char *name, df_store_change change, void *arg,
                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Writes what is held for the step, if that was not written meanwhile. */
int df_task_write_held(struct df_spawner *s, const char *name, struct df_err *err) DF_MUST_CHECK;
int df_task_create(struct df_spawner *s, const cJSON *task, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
