/*
 * tables.h - the fields of the three kinds of documents; inside spawner/model only.
 */
#ifndef DF_TABLES_H
#define DF_TABLES_H

#include "spawner/model/model.h"
#include "spawner/model/schema.h"

/* The rows of a whole document of this kind. */
const struct df_field *df_table(enum df_kind kind);

extern const struct df_field df_environment_item; /* of spec.environment */

/* The same of a TaskAction with the action workflow. */
const struct df_field *df_workflow_table(void);

#endif
