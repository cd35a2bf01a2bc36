/*
 * workflow.h - a TaskAction with the action workflow: somebody else's scheduler asks for an image
 * to be run against a target resource. docs/objects.md describes its fields.
 *
 * Contract: the execution of kubernaut's workflow executor, its specification and the validation of
 * it. Thread rule: pure functions, any thread.
 */
#ifndef DF_WORKFLOW_H
#define DF_WORKFLOW_H

#include "spawner/model/schema.h"

#define DF_ACTION_WORKFLOW "workflow"
#define DF_WORKFLOW_DEADLINE_SECONDS 1800 /* when nobody says */
#define DF_WORKFLOW_TTL_SECONDS 600       /* the lock's backstop: the name is free again */

/* Is this TaskAction one? */
bool df_task_is_workflow(const cJSON *task);

/* The rows of its spec. */
extern const struct df_field df_workflow_rows[];

/* What the rows cannot say: its pod has its image, account and resources from spec.workflow alone.
 * Asked when the rows are right. */
void df_workflow_check(const cJSON *task, const struct df_path *root, struct df_faults *f);

/* Why this name cannot be that of a parameter, which becomes an environment variable: NULL when it
 * can. Borrowed literal that goes behind the name. */
const char *df_workflow_parameter_fault(const char *name);

#endif
