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
/* The members of audit entries that filters are about, added in the same way; what does not say
 * the same as the entries is made anew then. In the order of time, and so narrow that all of them
 * are quickly looked at. */
extern const char df_db_audit_words[];

#endif
