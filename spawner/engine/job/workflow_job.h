/*
 * workflow_job.h - the Job of a `workflow` action, which runs the caller's image against a target
 * resource, and the meaning of its status.
 *
 * Contract: the job engine of kubernaut's workflow executor (its environment, mounts, status and
 * summary tables), without its defects: parameters cannot replace values of the system, and a pod
 * is not replaced without limit. Thread rule: pure functions.
 */
#ifndef DF_WORKFLOW_JOB_H
#define DF_WORKFLOW_JOB_H

#include "spawner/engine/workflow/workflow.h"

#define DF_WORKFLOW_CONTAINER "workflow"
#define DF_WORKFLOW_PODS 3 /* a workflow that needs more pods has failed */

/* Builds the Job. Class USER, reason InvalidStep, InvalidPlacement or PlacementDenied. The caller
 * owns *ret. */
int df_workflow_job_build(const struct df_workflow *w, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* ---- status ---- */

/* Has the Job its final condition, Complete or Failed? For all Jobs, also those of tofu steps. */
bool df_job_is_completed(const cJSON *job);

/* job: or NULL. events: a list of Events of the namespace, or NULL. They explain why a pod did not
 * start, and count how often it was replaced. */
struct df_workflow_status df_workflow_status(const cJSON *job, const cJSON *events);

#endif
