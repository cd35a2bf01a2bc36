/*
 * outcome.h - what the API is told of a step: that it runs, and how it ended. Contract: sections
 * 3.3 and 3.7, and the recorded exchanges. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_OUTCOME_H
#define DF_RUNNER_TERRAKUBE_OUTCOME_H

#include "runner/terrakube/flow.h"

/* Waits until the API has committed the dispatch of the job, so that its update does not undo ours,
 * and lets the log lines go. Once; later calls do nothing. *stop (may be NULL) ends it. */
void df_terrakube_await_queue(struct df_terrakube *t, const volatile bool *stop);

/* Job and step are `running`; a rejected job stays rejected. CONFLICT, reason JobOver: the job was
 * cancelled meanwhile. */
int df_terrakube_tell_running(struct df_terrakube *t, struct df_err *err) DF_MUST_CHECK;

/* The end of the step: saves the output (the file at log_path), then the step's status, then the
 * job's. Repeated for DF_TERRAKUBE_RETRY_MS each. An output that cannot be saved does not keep
 * back the result. Sets t->is_told. */
int df_terrakube_tell_end(struct df_terrakube *t, bool succeeded, const char *log_path,
                          struct df_err *err) DF_MUST_CHECK;

/* A step that could not be started here, and why, to be called if the report was not: the same for
 * a step that nobody else has begun. The API is asked for seconds; what is not told is in the
 * program's log. Sets t->is_told if it is. */
void df_terrakube_tell_unstarted(struct df_terrakube *t, const char *why);

/* The part of it that follows the output; t->job is fresh. step_is_told: of an earlier pod that
 * told the step's status, but not the job's. */
int df_terrakube_tell_rest(struct df_terrakube *t, bool step_is_told, bool succeeded,
                           struct df_err *err) DF_MUST_CHECK;

#endif
