/*
 * database.h - connections to the SQLite file that holds documents, audit trail and secrets.
 *
 * A new file is built under another name in the same directory and linked to its final name when
 * complete, so that an existing file is never changed unless it is ours. Failures: LIMIT for a full
 * disk, RETRY for a busy file, SYSTEM for everything else, with the file's name and the way out.
 * Thread rule: one connection, one thread at a time; any number of connections.
 */
#ifndef DF_DATABASE_H
#define DF_DATABASE_H

#include <sqlite3.h>

#include "common/base/err.h"

struct df_db; /* opaque */

enum df_db_check {
    DF_DB_CHECK_HEADER, /* it is a database of dayfly, with a schema version that we know */
    DF_DB_CHECK_ALL     /* and every page is intact; reads the whole file */
};

/* Opens the file for reading and writing; creates it if absent. */
int df_db_open(const char *path, enum df_db_check check, struct df_db **ret,
               struct df_err *err) DF_MUST_CHECK;
void df_db_close(struct df_db *db);

/* The values of a statement's parameters ?1, ?2, ... Texts and bytes are borrowed until the
 * statement is reset. */
struct df_db_arg {
    enum { DF_DB_END, DF_DB_INT, DF_DB_TEXT, DF_DB_BYTES } type;
    int64_t number; /* INT: the value; BYTES: the length */
    const void *bytes;
};
#define DF_DB_I(value)                                                                             \
    {                                                                                              \
        DF_DB_INT, (value), NULL                                                                   \
    }
#define DF_DB_T(text)                                                                              \
    {                                                                                              \
        DF_DB_TEXT, 0, (text)                                                                      \
    }
#define DF_DB_B(bytes, length)                                                                     \
    {                                                                                              \
        DF_DB_BYTES, (int64_t)(length), (bytes)                                                    \
    }
#define DF_DB_ARGS(...) ((const struct df_db_arg[]){__VA_ARGS__, {DF_DB_END, 0, NULL}})

/* Resets a statement when it goes out of scope: DF_DB_STMT sqlite3_stmt *q = NULL; */
static inline void df_cleanup_stmt(sqlite3_stmt **q)
{
    if (*q)
        (void)sqlite3_reset(*q);
}
#define DF_DB_STMT DF_CLEANUP(df_cleanup_stmt)

/* The statement with its parameters bound; each connection prepares it once. args may be NULL.
 * *ret is borrowed: the connection owns it. */
int df_db_query(struct df_db *db, const char *sql, const struct df_db_arg *args, sqlite3_stmt **ret,
                struct df_err *err) DF_MUST_CHECK;

/* *ret_row: true if there is another row, to be read with sqlite3_column_*(). */
int df_db_step(struct df_db *db, sqlite3_stmt *q, bool *ret_row, struct df_err *err) DF_MUST_CHECK;

/* Runs a statement to its end and ignores its rows. */
int df_db_run(struct df_db *db, const char *sql, const struct df_db_arg *args,
              struct df_err *err) DF_MUST_CHECK;

/* Runs the statements of this text, which add to the schema what an older database has not. */
int df_db_make(struct df_db *db, const char *statements, struct df_err *err) DF_MUST_CHECK;

/* Writes a copy of the whole database, of one moment, into a new file at path, without blocking
 * other connections. On failure the caller removes the file. */
int df_db_copy(struct df_db *db, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Runs body in a write transaction. If body returns 0 the transaction is committed durably; if it
 * returns 1 (nothing to do) or -1 it is rolled back. Returns the result of body, or -1 if the
 * commit failed: then nothing was written. */
typedef int (*df_db_body)(struct df_db *db, void *arg, struct df_err *err);
int df_db_transaction(struct df_db *db, df_db_body body, void *arg,
                      struct df_err *err) DF_MUST_CHECK;

#endif
