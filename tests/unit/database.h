/*
 * database.h - changes the spawner's database behind its back. Include behind cmocka.h.
 */
#ifndef DF_TEST_DATABASE_H
#define DF_TEST_DATABASE_H

#include <sqlite3.h>

#include "common/base/fs.h"

/* dir: the directory with dayfly.db. */
static inline void execute(const char *dir, const char *sql)
{
    DF_FREE char *path = df_fs_join(dir, "dayfly.db");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#endif
