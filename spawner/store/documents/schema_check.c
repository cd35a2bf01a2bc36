/* schema_check.c - whether a database file has what dayfly makes, and nothing else. */
#include "spawner/store/documents/schema.h"
#include "spawner/store/store.h"

static void cleanup_handle(sqlite3 **handle)
{
    (void)sqlite3_close(*handle);
}

static void cleanup_statement(sqlite3_stmt **q)
{
    (void)sqlite3_finalize(*q);
}

static void cleanup_file(struct df_db **db)
{
    df_db_close(*db);
}

/* Makes a database in memory with all that dayfly makes, and a query for one object of it. */
static int make_pattern(sqlite3 **ret, sqlite3_stmt **ret_find)
{
    int rc = sqlite3_open_v2(":memory:", ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*ret, df_db_schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*ret, df_db_secret_uses, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*ret, df_db_audit_words, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(*ret,
                                "SELECT 1 FROM sqlite_schema WHERE type IS ?1 AND name IS ?2 AND "
                                "tbl_name IS ?3 AND sql IS ?4",
                                -1, ret_find, NULL);
    return rc;
}

/* Looks for a row (type, name, tbl_name, sql) of another database. */
static bool is_in(sqlite3_stmt *find, sqlite3_stmt *row)
{
    for (int i = 0; i < 4; i++)
        (void)sqlite3_bind_value(find, i + 1, sqlite3_column_value(row, i));
    bool found = sqlite3_step(find) == SQLITE_ROW;
    (void)sqlite3_reset(find);
    return found;
}

static int compare(struct df_db *db, sqlite3_stmt *find, bool *ret_same, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *all = NULL;
    bool row = false, same = true;
    if (df_db_query(db, "SELECT type, name, tbl_name, sql FROM sqlite_schema", NULL, &all, err) < 0)
        return -1;
    do {
        if (df_db_step(db, all, &row, err) < 0)
            return -1;
        same = same && (!row || is_in(find, all));
    } while (row && same);
    *ret_same = same;
    return 0;
}

int df_store_sqlite_check(const char *path, struct df_err *err)
{
    DF_CLEANUP(cleanup_file) struct df_db *db = NULL;
    DF_CLEANUP(cleanup_handle) sqlite3 *pattern = NULL;
    DF_CLEANUP(cleanup_statement) sqlite3_stmt *find = NULL;
    bool same = false;
    if (df_db_open(path, DF_DB_CHECK_ALL, &db, err) < 0)
        return -1;
    if (make_pattern(&pattern, &find) != SQLITE_OK)
        return df_fail_oom(err);
    if (compare(db, find, &same, err) < 0)
        return -1;
    return same ? 0
                : df_fail(err, DF_ERR_SYSTEM,
                          "database %s has tables, indices, views or triggers that dayfly does not "
                          "make",
                          path);
}
