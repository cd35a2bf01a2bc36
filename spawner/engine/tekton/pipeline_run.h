/*
 * pipeline_run.h - the PipelineRun of a `workflow` action: the Pipeline `workflow` of the bundle
 * that the action names, run by Tekton against a target resource.
 *
 * Contract: the Tekton engine of kubernaut's workflow executor, and Tekton's API tekton.dev/v1. Two
 * things are ours: the run has the action's deadline instead of Tekton's default, and a placement
 * goes into the pod template. Thread rule: pure functions.
 */
#ifndef DF_PIPELINE_RUN_H
#define DF_PIPELINE_RUN_H

#include "spawner/engine/workflow/workflow.h"

/* The keys of a placement that a PipelineRun can express; ended by NULL. */
extern const char *const df_pipeline_placement[];

/* Builds the PipelineRun. Class USER: reason InvalidStep; InvalidPlacement with the key that a
 * PipelineRun cannot express; PlacementDenied for what no step may have (never.h). The caller owns
 * *ret. */
int df_pipeline_run_build(const struct df_workflow *w, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
