/*
 * awx_job.h - a workflow as a job of AWX: what engineConfig says of it, its name, what its status
 * means. Contract: kubernaut's ansible executor. Thread rule: pure functions, any thread.
 */
#ifndef DF_ENGINE_AWX_JOB_H
#define DF_ENGINE_AWX_JOB_H

#include "spawner/engine/workflow/workflow.h"

enum { DF_AWX_SHOWN = 850 /* bytes of an output, with the end: they fit into a step's cause */ };

/* spec.workflow.engineConfig. Borrowed from it; "": not said. Only the job template goes to AWX:
 * project, playbook and inventory are the template's own. */
struct df_awx_config {
    const char *playbook, *job_template, *inventory;
};
/* Names of members are compared without case, as Go does. USER, in the words of the contract: it is
 * missing (NULL) or no object, a member is no string or unknown, there is no playbookPath. */
int df_awx_config_of(const cJSON *engine_config, struct df_awx_config *ret,
                     struct df_err *err) DF_MUST_CHECK;

/* "awx-job-42", as status.engineRef has it. */
void df_awx_job_ref(int64_t id, char to[32]);
/* USER: it is none. */
int df_awx_job_id(const char *ref, int64_t *ret, struct df_err *err) DF_MUST_CHECK;

/* status: of the job; NULL: AWX has no such job any more. output: of the job, where secrets are
 * masked already; or NULL. The end of it is the message of a job that failed. */
void df_awx_job_status(const char *status, const char *output, struct df_workflow_status *ret);

#endif
