/*
 * pipeline_status.h - the meaning of a PipelineRun's status: how far the workflow is, and why it
 * failed.
 *
 * Contract: the status, summary and classification tables of kubernaut's Tekton engine. Thread
 * rule: pure functions.
 */
#ifndef DF_PIPELINE_STATUS_H
#define DF_PIPELINE_STATUS_H

#include "spawner/engine/workflow/workflow.h"

/* run: or NULL. task_runs: {name: TaskRun} of those of the run that exist; or NULL. The result
 * borrows from the run. */
struct df_workflow_status df_pipeline_status(const cJSON *run, const cJSON *task_runs);

/* Has Tekton begun with the run? */
bool df_pipeline_has_begun(const cJSON *run);

/* Why the run does not come forward although it has begun: the message of a task that waits for its
 * pod; NULL: none waits. *ret_task: its name. All borrowed. */
const char *df_pipeline_waits_for(const cJSON *run, const cJSON *task_runs, const char **ret_task);

#endif
