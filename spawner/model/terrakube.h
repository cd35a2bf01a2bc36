/*
 * terrakube.h - a TaskAction with the action terrakube: a step of a job of Terrakube, which its API
 * gives to an executor (POST /api/v1/terraform-rs). docs/terrakube.md describes it.
 *
 * The document says which step it is and where its pod goes. The payload, which has secrets, is not
 * in it (steps/payloads.h). Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_TERRAKUBE_H
#define DF_MODEL_TERRAKUBE_H

#include "common/terrakube/payload.h"

#define DF_ACTION_TERRAKUBE "terrakube"

/* "tk-<job>-<step>": one step of Terrakube has one name, however often the API sends it. The caller
 * frees; NULL: out of memory. */
char *df_terrakube_task_name(const struct df_terrakube_payload *p);

/* The spec of the step: who it is, and the keys of its workspace that place the pod (ephemeral.h).
 * Of a payload that could not be read organization, job and step are enough. The caller owns *ret. */
int df_terrakube_task_spec(const struct df_terrakube_payload *p, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;

/* The placement that the workspace's keys ask for. USER, reason InvalidPlacement: a key makes no sense, or
 * what no workspace may set, whatever the policy allows: variables that change how the runner works
 * (runner_environment.h), and mounts over the programs and files of its image. The caller owns *ret. */
int df_terrakube_placement(const cJSON *task, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Organization, workspace, job and step of the TaskAction, borrowed; all else is 0: for calls of the API
 * about the step. */
void df_terrakube_task_payload(const cJSON *task, struct df_terrakube_payload *ret);

#endif
