/*
 * tables.h - the fields of the kinds of documents, one row each (field.h); kinds.h has them by
 * their kind. docs/objects.md describes them. Thread rule: constant data.
 */
#ifndef DF_TABLES_H
#define DF_TABLES_H

#include "spawner/model/field.h"
#include "spawner/model/names.h"

/* Documents. df_task_rows: of a step of a run. */
extern const struct df_field df_executor_rows[], df_run_rows[], df_task_rows[];
extern const struct df_field df_integration_document[];
extern const struct df_field df_revision_spec[], df_revision_rows[];
/* TaskActions with the actions workflow and terrakube. */
extern const struct df_field df_workflow_document[], df_terrakube_document[];

/* Their specs; df_workflow_rows and df_integration_rows are in the headers of their own. */
extern const struct df_field df_executor_spec[], df_run_spec[], df_task_spec[];
extern const struct df_field df_terrakube_rows[];

extern const struct df_field df_environment_item; /* of spec.environment */

#endif
