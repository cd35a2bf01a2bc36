/*
 * executor.h - the pure decisions about an Executor: what whose verbs allow in which state, and how
 * a run's phase changes the state. docs/objects.md, "States", has both as tables. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_MODEL_EXECUTOR_H
#define DF_MODEL_EXECUTOR_H

#include "common/json/json.h"
#include "spawner/model/verbs.h"

/* The words of status.state and status.status. */
#define DF_EXECUTOR_STATES "provision|provisioned|destroy|destroyed"
#define DF_EXECUTOR_STATUSES "ready|refused|queued|in_progress|done|error|pending|unknown"

/* The verb that a run with this action needs. */
df_verbs df_action_verb(enum df_action action);

/* May a caller with these verbs on the executor request a run with this action now? A busy executor
 * queues further runs. DENIED: a verb lacks; CONFLICT, reason WrongState: the state does not allow
 * it. */
int df_executor_check_action(const cJSON *executor, enum df_action action, df_verbs verbs,
                             struct df_err *err) DF_MUST_CHECK;

/* The actions that these verbs allow to request of the executor now (the table of states in
 * docs/objects.md). At most 8; ends with NULL. Borrowed literals. An offered action is never
 * refused.
 * "execute" and "recreate" are a run with action provision, "dryrun" and "destroy" the runs of that
 * name; "edit" and "delete" change or remove the document; "cancel" ends the run that is queued,
 * under way or waiting for approval. */
void df_executor_actions(const cJSON *executor, df_verbs verbs, const char *ret[9]);

/* May the executor be changed, or deleted? DENIED: a verb lacks. CONFLICT, reason
 * WrongState: the state does not allow it; the message says what to do. */
int df_executor_check_edit(const cJSON *executor, df_verbs verbs, struct df_err *err) DF_MUST_CHECK;
int df_executor_check_delete(const cJSON *executor, df_verbs verbs,
                             struct df_err *err) DF_MUST_CHECK;

/* May a person replace its state now? CONFLICT WrongState while a run uses it. */
int df_executor_check_push(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* A person stored a state: the executor may hold resources from now on. In the state provision or
 * destroyed it becomes provisioned/done, so that it can be planned and destroyed, but not deleted;
 * during a run the change is made when that run ends without changing the state. Idempotent. */
int df_executor_adopt(cJSON *executor, struct df_err *err) DF_MUST_CHECK;

/* May it be deleted although its resources stay? Not while it is busy. */
int df_executor_check_forget(const cJSON *executor, df_verbs verbs,
                             struct df_err *err) DF_MUST_CHECK;
/* Is a run queued, under way or waiting for approval? */
bool df_executor_is_busy(const cJSON *executor);
/* Does it hold resources, as far as known? Then its source and its storage stay. */
bool df_executor_is_in_use(const cJSON *executor);

/* Do both URLs name the same repository? Slashes and .git at the end and the case of scheme and
 * host are ignored. */
bool df_source_is_same(const char *a, const char *b);
/* Are both the same module in a directory of this machine, however much of what is around it comes
 * along? Sources, not executors. */
bool df_source_is_same_directory(const cJSON *a, const cJSON *b);

/* An executor that may hold resources keeps its source: with another repository the next run would
 * destroy them all. CONFLICT SourceChange unless the change is confirmed; the message says how. */
int df_executor_check_source(const cJSON *old, const cJSON *doc, bool confirmed,
                             struct df_err *err) DF_MUST_CHECK;
/* The same check for custom resources, where the former document is not known: it compares with
 * status.provisionedFrom, the URL of the last apply. The annotation
 * dayfly.dev/confirm-source-change, which contains the new URL, confirms. */
int df_executor_check_provisioned_from(const cJSON *executor, struct df_err *err) DF_MUST_CHECK;
/* The same for its storage, status.provisionedStorage of the last apply or move; that of a move
 * that is under way is accepted, too. edited: the new document with its defaults. CONFLICT
 * StorageChange; the message says the way out. */
int df_executor_check_provisioned_storage(const cJSON *executor, const cJSON *edited,
                                          struct df_err *err) DF_MUST_CHECK;

/* Sets state, status, activeRun and lastRun in the executor's status by the phase of a run. Call it
 * with the oldest unfinished run (from Pending on) and with every run that gets a final phase;
 * queued runs change nothing, and dry-runs change neither state nor status. run: the document with
 * its new phase and steps. state_is_empty: the state that a final run left was read and holds no
 * resource. Idempotent. Write the executor before the run: the next pass repairs a crash between
 * the two writes. */
int df_executor_follow_run(cJSON *executor, const cJSON *run, bool state_is_empty,
                           struct df_err *err) DF_MUST_CHECK;

/* The run is about to start a step that may create resources: sets mayHoldResources, and where they
 * come from. It must be durable before the step exists, whatever happens to run and step later. */
int df_executor_expect_resources(cJSON *executor, const cJSON *run,
                                 struct df_err *err) DF_MUST_CHECK;

/* Its active run does not exist any more, and nobody knows how it ended: status error, without an
 * active run. */
int df_executor_lose_run(cJSON *executor, int64_t now_us, struct df_err *err) DF_MUST_CHECK;

#endif
