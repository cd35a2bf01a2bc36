/*
 * workflow.h - the action `workflow` of the engine `job`: what is its own there. Inside
 * spawner/engine only.
 *
 * A step is handed in under the name of its Job: df_workflow_step(). Contract: see workflow_job.h.
 */
#ifndef DF_ENGINE_WORKFLOW_H
#define DF_ENGINE_WORKFLOW_H

#include "common/kube/kube.h"
#include "spawner/engine/engine.h"
#include "spawner/engine/job_view.h"
#include "spawner/engine/workflow_job.h"

#define DF_WORKFLOW_NAME 21 /* bytes of a name: df_workflow_name() */

struct df_workflow_place {
    struct df_kube *kube;
    struct df_job_watch *watch;
    const char *name_space;
};

/* The step under the name of its Job, which is the lock on its target; name is where that is kept.
 * A step that is no workflow stays as it is. */
int df_workflow_step(const struct df_engine_step *step, char name[DF_WORKFLOW_NAME],
                     struct df_engine_step *ret, struct df_err *err) DF_MUST_CHECK;

/* The Job. The caller owns *ret. */
int df_workflow_build(const struct df_workflow_place *p, const struct df_engine_step *step,
                      cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The name was taken when the Job was to be created. Our own is *ret_job. Another action's that has
 * ended is deleted, by its uid: RETRY. One that lives, or that is nobody's: CONFLICT TargetLocked.
 */
int df_workflow_meet(const struct df_workflow_place *p, const struct df_engine_step *step,
                     cJSON **ret_job, struct df_err *err) DF_MUST_CHECK;

/* What there is of it. */
int df_workflow_look(const struct df_workflow_place *p, const struct df_engine_step *step,
                     struct df_engine_observation *ret, struct df_err *err) DF_MUST_CHECK;

/* {engineRef, executionStatus}: the latter is the summary of the contract. NOT_FOUND without a Job.
 * The caller owns *ret. */
int df_workflow_result(const struct df_workflow_place *p, const struct df_engine_step *step,
                       cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
