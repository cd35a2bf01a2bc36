/*
 * workflow.h - a TaskAction with the action workflow: another scheduler requests that an image is
 * run against a target resource. docs/objects.md describes its fields.
 *
 * Contract: specification and validation as in kubernaut's workflow executor. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_WORKFLOW_H
#define DF_WORKFLOW_H

#include "spawner/model/engine_kinds.h"
#include "spawner/model/schema.h"

#define DF_ACTION_WORKFLOW "workflow"
#define DF_WORKFLOW_SERVICE_ACCOUNT "kubernaut-workflow-runner" /* the default */
#define DF_WORKFLOW_DEADLINE_SECONDS 1800                       /* the default */
#define DF_WORKFLOW_TTL_SECONDS 600 /* an ended Job, and with it the lock, is removed then */

/* Is this TaskAction a workflow? */
bool df_task_is_workflow(const cJSON *task);

/* Refuses a TaskAction with another action, which somebody asked for: names the Run to ask for
 * instead. Class USER, reason InvalidDocument. Returns -1. */
int df_task_refuse_step(const cJSON *task, struct df_err *err);

/* The rows of its spec. */
extern const struct df_field df_workflow_rows[];

/* Rules that the rows cannot express: image, service account and resources of the pod come from
 * spec.workflow only, and the engine decides what parameters, bundle and engineConfig may be. Rows
 * that are invalid are left to their own faults. */
void df_workflow_check(const cJSON *task, const struct df_path *root, struct df_faults *f);

/* NULL if the name is valid for a parameter that becomes this. Otherwise the reason: a borrowed
 * literal that continues a sentence after the name. */
const char *df_workflow_parameter_fault(enum df_parameters as, const char *name);

#endif
