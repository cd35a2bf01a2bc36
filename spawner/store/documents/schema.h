/*
 * schema.h - the tables that dayfly makes. Only for spawner/store.
 */
#ifndef DF_SCHEMA_H
#define DF_SCHEMA_H

#include "spawner/store/documents/database.h"

/* The statements that make a new database. */
extern const char df_db_schema[];
/* The one that the vault adds: databases that are older than this table get it when they are
 * opened. A secret without a row in it may be used by every executor. */
extern const char df_db_secret_uses[];

#endif
