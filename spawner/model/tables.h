/*
 * tables.h - the fields of the three kinds of documents, one row each (field.h). docs/objects.md
 * describes them. Thread rule: constant data.
 */
#ifndef DF_TABLES_H
#define DF_TABLES_H

#include "spawner/model/field.h"
#include "spawner/model/names.h"

/* The rows of a document of this kind. DF_KIND_TASK_ACTION: of a step of a run. */
const struct df_field *df_table(enum df_kind kind);

/* The rows of a TaskAction with the action workflow. */
const struct df_field *df_workflow_table(void);

/* The rows of a TaskAction with the action terrakube, and of its spec. */
const struct df_field *df_terrakube_table(void);
extern const struct df_field df_terrakube_rows[];

/* The rows of the spec of a document of this kind. */
const struct df_field *df_spec_table(enum df_kind kind);

/* The rows of an Integration (integration_spec.h). */
const struct df_field *df_integration_table(void);

/* The row of this member of the spec; for a TaskAction, of any of its three
 * kinds. NULL: none. */
const struct df_field *df_spec_field(enum df_kind kind, const char *name);

extern const struct df_field df_environment_item; /* of spec.environment */

#endif
