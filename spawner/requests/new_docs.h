/*
 * new_docs.h - builds Runs and TaskActions. Pure: no store.
 */
#ifndef DF_REQUESTS_NEW_DOCS_H
#define DF_REQUESTS_NEW_DOCS_H

#include "spawner/config/config.h"
#include "spawner/model/model.h"

/* The member of a request that is not stored in a document (steps/sealed.h). */
#define DF_RUN_SECRETS "secrets"

/* Builds a Run from a request's body and marks (requests.h). It is checked but has no number yet.
 */
int df_new_run(const char *executor, const cJSON *body, const cJSON *marks, const char *actor,
               cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Refuses a combination of run, executor and instance that is invalid (placement, class,
 * environment), so that the client learns it and not a later step. */
int df_new_run_check(const struct df_config *config, const cJSON *run, const cJSON *executor,
                     struct df_err *err) DF_MUST_CHECK;

/* Builds spec.cancel of a run or a workflow: {by, at: now, reason}. why: or NULL. NULL if out of
 * memory. */
cJSON *df_new_cancel(const char *by, const char *why);

/* Sets the status of a new Executor. */
int df_new_executor_status(cJSON *executor, const char *creator, struct df_err *err) DF_MUST_CHECK;

/* Sets the name of the executor's run with this number. */
int df_new_run_name(cJSON *run, const cJSON *executor, int64_t number,
                    struct df_err *err) DF_MUST_CHECK;

/* Sets number, labels, status and spec.snapshot: a copy of the executor's current spec over the
 * class and environment that the instance configures for it (`workspaces`). A later edit of the
 * executor does not change the run. */
int df_new_run_number(const struct df_config *config, cJSON *run, const cJSON *executor,
                      int64_t number, struct df_err *err) DF_MUST_CHECK;

/* Builds the TaskAction of the run's step with this name (recipe.h). action: its spec.action. */
int df_new_task(const cJSON *run, const char *step, const char *action,
                const struct df_config *config, int64_t now_us, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

/* Returns the name of that TaskAction. */
int df_new_task_name(const cJSON *run, const char *step, char ret[64],
                     struct df_err *err) DF_MUST_CHECK;

#endif
