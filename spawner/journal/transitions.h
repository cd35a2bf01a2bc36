/*
 * transitions.h - writes of TaskActions. Each new entry of the phase history becomes a line of the
 * log and a metric with its cause, once, after it is durable. Thread rule: any thread.
 */
#ifndef DF_JOURNAL_TRANSITIONS_H
#define DF_JOURNAL_TRANSITIONS_H

#include "spawner/spawner.h"

/* df_store_modify() and df_store_create() of a TaskAction, with log and metric. */
int df_task_modify(struct df_spawner *s, const char *name, df_store_change change, void *arg,
                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;
int df_task_create(struct df_spawner *s, const cJSON *task, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
