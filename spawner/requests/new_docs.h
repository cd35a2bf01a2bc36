/*
 * new_docs.h - makes Runs and TaskActions. Pure: no store.
 */
#ifndef DF_REQUESTS_NEW_DOCS_H
#define DF_REQUESTS_NEW_DOCS_H

#include "spawner/config/config.h"
#include "spawner/model/model.h"

/* The member of a request that no document gets (steps/sealed.h). */
#define DF_RUN_SECRETS "secrets"

/* A Run from a request's body and marks (requests.h), checked, but without its number yet. */
int df_new_run(const char *executor, const cJSON *body, const cJSON *marks, const char *actor,
               cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* What run, executor and instance cannot say together (placement, class, environment): told to who
 * asks, not to a step later. */
int df_new_run_check(const struct df_config *config, const cJSON *run, const cJSON *executor,
                     struct df_err *err) DF_MUST_CHECK;

/* A note that somebody asked for something: {by, at: now} and one member more (value may be NULL).
 * NULL on no memory. */
cJSON *df_new_note(const char *by, const char *key, const char *value);

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

/* The TaskAction of a run's step of this name (recipe.h). action: its spec.action. */
int df_new_task(const cJSON *run, const char *step, const char *action,
                const struct df_config *config, int64_t now_us, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

/* The name of that TaskAction. */
int df_new_task_name(const cJSON *run, const char *step, char ret[64],
                     struct df_err *err) DF_MUST_CHECK;

#endif
