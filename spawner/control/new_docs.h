/*
 * new_docs.h - makes Runs and TaskActions. Pure: no store, no clock but the time that is given.
 */
#ifndef DF_CONTROL_NEW_DOCS_H
#define DF_CONTROL_NEW_DOCS_H

#include "spawner/config/config.h"
#include "spawner/model/model.h"

/* A Run from a request's body (control.h), checked, but without its number yet. */
int df_new_run(const char *executor, const cJSON *body, const char *actor, cJSON **ret,
               struct df_err *err) DF_MUST_CHECK;

/* What run, executor and instance cannot say together (placement, class, environment): told to who
 * asks, not to a step later. */
int df_new_run_check(const struct df_config *config, const cJSON *run, const cJSON *executor,
                     struct df_err *err) DF_MUST_CHECK;

/* The status of a new Executor. */
int df_new_executor_status(cJSON *executor, const char *creator, struct df_err *err) DF_MUST_CHECK;

/* The name of the executor's run with this number. */
int df_new_run_name(cJSON *run, const cJSON *executor, int64_t number,
                    struct df_err *err) DF_MUST_CHECK;

/* Gives it number, labels and status, and in spec.snapshot a copy of what the executor says now,
 * above the class and environment that the instance has for it (`workspaces`): a later edit does
 * not reach a run under way. */
int df_new_run_number(const struct df_config *config, cJSON *run, const cJSON *executor,
                      int64_t number, struct df_err *err) DF_MUST_CHECK;

/* The TaskAction of a run's step "plan" or "apply". action: as in TaskAction's spec.action. */
int df_new_task(const cJSON *run, const char *step, const char *action,
                const struct df_config *config, int64_t now_us, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

/* The name of that TaskAction. */
int df_new_task_name(const cJSON *run, const char *step, char ret[64],
                     struct df_err *err) DF_MUST_CHECK;

#endif
