/*
 * SQLite: errors as df_err, statements and transactions, and opening a file with the checks before
 * it. Start with df_db_open() at the end.
 */
#include "spawner/store/documents/database.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "spawner/store/documents/schema.h"

#define APPLICATION_ID 0x64666c79 /* "dfly" */
#define SCHEMA_VERSION 1
#define BUSY_MS 10000
#define MAX_STATEMENTS 32

#define WAY_OUT "restore it from a copy, or start with another --data-directory"

struct df_db {
    sqlite3 *handle;
    char *path;
    sqlite3_stmt *statements[MAX_STATEMENTS];
    size_t statement_count;
};

/* ---- failures ------------------------------------------------------------------------------- */

static int fail_with(const char *path, sqlite3 *handle, int rc, struct df_err *err)
{
    int last = errno;
    int os = handle ? sqlite3_system_errno(handle) : 0;
    /* SQLite does not keep the cause of a failed commit. */
    if (!os && (rc & 0xff) == SQLITE_IOERR)
        os = last;
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return df_fail_oom(err);
    case SQLITE_FULL:
        return df_fail_errno(err, ENOSPC, "database %s", path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return df_fail(err, DF_ERR_RETRY, "database %s is busy: another process holds it", path);
    case SQLITE_NOTADB:
        return df_fail(err, DF_ERR_SYSTEM, "%s is not a dayfly database: " WAY_OUT, path);
    case SQLITE_CORRUPT:
        return df_fail(err, DF_ERR_SYSTEM, "database %s is damaged: " WAY_OUT, path);
    case SQLITE_READONLY:
        return df_fail(err, DF_ERR_SYSTEM,
                       "database %s cannot be written: check its owner, its mode and the mount",
                       path);
    default:
        break;
    }
    if (os == ENOSPC || os == EDQUOT || os == EFBIG)
        return df_fail_errno(err, os, "database %s", path);
    return df_fail(err, DF_ERR_SYSTEM, "database %s: %s%s%s", path,
                   handle ? sqlite3_errmsg(handle) : sqlite3_errstr(rc), os ? ": " : "",
                   os ? strerrordesc_np(os) : "");
}

static int fail_sqlite(const struct df_db *db, int rc, struct df_err *err)
{
    return fail_with(db->path, db->handle, rc, err);
}

/* ---- statements ----------------------------------------------------------------------------- */

static int prepare_statement(struct df_db *db, const char *sql, sqlite3_stmt **ret,
                             struct df_err *err)
{
    for (size_t i = 0; i < db->statement_count; i++) {
        if (df_streq(sqlite3_sql(db->statements[i]), sql)) {
            *ret = db->statements[i];
            return 0;
        }
    }
    if (db->statement_count == MAX_STATEMENTS)
        DF_BUG("more than %d statements: %s", MAX_STATEMENTS, sql);
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q, NULL);
    if (rc != SQLITE_OK)
        return fail_sqlite(db, rc, err);
    db->statements[db->statement_count++] = q;
    *ret = q;
    return 0;
}

static int bind_arg(sqlite3_stmt *q, int at, const struct df_db_arg *arg)
{
    if (arg->type == DF_DB_INT)
        return sqlite3_bind_int64(q, at, arg->number);
    if (arg->type == DF_DB_TEXT)
        return sqlite3_bind_text(q, at, arg->bytes, -1, SQLITE_STATIC);
    return sqlite3_bind_blob64(q, at, arg->bytes, (sqlite3_uint64)arg->number, SQLITE_STATIC);
}

int df_db_query(struct df_db *db, const char *sql, const struct df_db_arg *args, sqlite3_stmt **ret,
                struct df_err *err)
{
    sqlite3_stmt *q = NULL;
    if (prepare_statement(db, sql, &q, err) < 0)
        return -1;
    for (int i = 0; args && args[i].type != DF_DB_END; i++) {
        int rc = bind_arg(q, i + 1, &args[i]);
        if (rc != SQLITE_OK)
            return fail_sqlite(db, rc, err);
    }
    *ret = q;
    return 0;
}

int df_db_step(struct df_db *db, sqlite3_stmt *q, bool *ret_row, struct df_err *err)
{
    errno = 0;
    int rc = sqlite3_step(q);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        (void)fail_sqlite(db, rc, err);
        (void)sqlite3_reset(q);
        return -1;
    }
    *ret_row = rc == SQLITE_ROW;
    return 0;
}

int df_db_run(struct df_db *db, const char *sql, const struct df_db_arg *args, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = true;
    if (df_db_query(db, sql, args, &q, err) < 0)
        return -1;
    while (row) {
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
    }
    return 0;
}

int df_db_make(struct df_db *db, const char *statements, struct df_err *err)
{
    int rc = sqlite3_exec(db->handle, statements, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail_sqlite(db, rc, err);
}

int df_db_transaction(struct df_db *db, df_db_body body, void *arg, struct df_err *err)
{
    if (df_db_run(db, "BEGIN IMMEDIATE", NULL, err) < 0)
        return -1;
    int result = body(db, arg, err);
    if (result == 0)
        result = df_db_run(db, "COMMIT", NULL, err);
    /* After some failures SQLite has already rolled back. */
    if (result != 0 && !sqlite3_get_autocommit(db->handle))
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

/* ---- opening -------------------------------------------------------------------------------- */

void df_db_close(struct df_db *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < db->statement_count; i++)
        (void)sqlite3_finalize(db->statements[i]);
    (void)sqlite3_close(db->handle);
    free(db->path);
    free(db);
}

static void cleanup_handle(sqlite3 **h)
{
    (void)sqlite3_close(*h);
}

static void cleanup_db(struct df_db **db)
{
    df_db_close(*db);
}

static int number_of(sqlite3 *handle, const char *sql, int64_t *ret)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(handle, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

enum { HEADER = 100, OWNER_AT = 68 }; /* of a database file: sqlite.org/fileformat2.html */

/* Reads the first bytes as SQLite's own file layer does. A plain open and close would drop the
 * locks of our other connections (POSIX). */
static int read_header(const char *path, unsigned char header[HEADER])
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    DF_FREE sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    sqlite3_filename name = sqlite3_create_filename(path, "", "", 0, NULL);
    int rc = SQLITE_NOMEM;
    if (file && name)
        rc = vfs->xOpen(vfs, name, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, NULL);
    if (rc == SQLITE_OK)
        rc = file->pMethods->xRead(file, header, HEADER, 0);
    if (file && file->pMethods)
        (void)file->pMethods->xClose(file);
    sqlite3_free_filename(name);
    return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_NOTADB : rc;
}

/* Checks the file without changing it or its journal and log, and without believing more of it: a
 * process that was killed while it took the log over leaves a first page that is ahead of the
 * rest. */
static int check_owner(const char *path, struct df_err *err)
{
    unsigned char header[HEADER] = {0};
    struct stat st;
    if (stat(path, &st) < 0)
        return df_fail_errno(err, errno, "database %s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_SYSTEM, "database %s is not a regular file: " WAY_OUT, path);
    int rc = read_header(path, header);
    if (rc != SQLITE_OK)
        return fail_with(path, NULL, rc, err);
    const unsigned char *at = header + OWNER_AT;
    uint32_t owner = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    if (memcmp(header, "SQLite format 3", 16) != 0 || owner != APPLICATION_ID)
        return df_fail(err, DF_ERR_SYSTEM, "%s is not a dayfly database: " WAY_OUT, path);
    return 0;
}

static int fill_new(const char *path, struct df_err *err)
{
    DF_CLEANUP(cleanup_handle) sqlite3 *handle = NULL;
    int rc = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(handle, "BEGIN", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(handle, df_db_schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(handle, "COMMIT; PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail_with(path, handle, rc, err);
}

/* A database is its file and those that SQLite makes beside it, with the mode of the first. */
static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};

/* Removes the files of an earlier attempt. */
static void remove_unfinished(const char *unfinished)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(suffixes); i++) {
        DF_FREE char *path = df_strf("%s%s", unfinished, suffixes[i]);
        if (path)
            (void)unlink(path);
    }
}

/* An earlier version left the mode to the umask. What the owner may do is the owner's choice. */
static int close_to_others(const char *database, struct df_err *err)
{
    struct stat st;
    for (size_t i = 0; i < DF_ARRAY_SIZE(suffixes); i++) {
        DF_FREE char *path = df_strf("%s%s", database, suffixes[i]);
        if (!path)
            return df_fail_oom(err);
        bool is_open = stat(path, &st) == 0 && (st.st_mode & 077);
        if (is_open && chmod(path, st.st_mode & 0700) < 0)
            return df_fail_errno(err, errno, "close %s to others", path);
    }
    return 0;
}

static int sync_directory_of(const char *path, struct df_err *err)
{
    const char *slash = strrchr(path, '/');
    DF_FREE char *dir =
        slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    return df_fs_sync_dir(dir, err);
}

static int make_file(const char *path, struct df_err *err)
{
    DF_FREE char *wal = df_strf("%s-wal", path);
    DF_FREE char *unfinished = df_strf("%s.new", path);
    if (!wal || !unfinished)
        return df_fail_oom(err);
    /* SQLite would apply the log of a lost database to the new one. */
    if (df_fs_exists(wal))
        return df_fail(err, DF_ERR_SYSTEM, "database %s is missing although %s is there: " WAY_OUT,
                       path, wal);
    remove_unfinished(unfinished);
    if (fill_new(unfinished, err) < 0) {
        remove_unfinished(unfinished);
        return -1;
    }
    /* link, not rename: a file that another process created in the meantime is not replaced. */
    int failed = link(unfinished, path) < 0 && errno != EEXIST ? errno : 0;
    remove_unfinished(unfinished);
    return failed ? df_fail_errno(err, failed, "create database %s", path)
                  : sync_directory_of(path, err);
}

static int check_version(struct df_db *db, struct df_err *err)
{
    int64_t version = 0;
    int rc = number_of(db->handle, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return fail_sqlite(db, rc, err);
    if (version != SCHEMA_VERSION)
        return df_fail(err, DF_ERR_SYSTEM,
                       "database %s has schema version %lld and this dayfly knows version %d: run "
                       "the newer dayfly, or start with another --data-directory",
                       db->path, (long long)version, SCHEMA_VERSION);
    return 0;
}

static int check_pages(struct df_db *db, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "PRAGMA quick_check(1)", NULL, &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    const char *found = row ? (const char *)sqlite3_column_text(q, 0) : "no answer";
    if (!df_streq(found, "ok"))
        return df_fail(err, DF_ERR_SYSTEM, "database %s is damaged (%s): " WAY_OUT, db->path,
                       found ? found : "unreadable");
    return 0;
}

/* A small page cache suffices, because the kernel caches the file; an idle service stays small. */
static int tune_connection(struct df_db *db, struct df_err *err)
{
    static const char pragmas[] = "PRAGMA synchronous = FULL; PRAGMA cache_size = -256;"
                                  "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 4194304";
    (void)sqlite3_busy_timeout(db->handle, BUSY_MS);
    (void)sqlite3_extended_result_codes(db->handle, 1);
    int rc = sqlite3_exec(db->handle, pragmas, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail_sqlite(db, rc, err);
}

/* The file may be another's work (a forged backup): nothing that it brings along is executed, and
 * no statement gets at SQLite's own tables. Ours has neither triggers nor views. */
static void distrust_content(struct df_db *db)
{
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

static int connect_to(struct df_db *db, enum df_db_check check, struct df_err *err)
{
    int rc =
        sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return fail_sqlite(db, rc, err);
    if (sqlite3_db_readonly(db->handle, "main") == 1)
        return fail_sqlite(db, SQLITE_READONLY, err);
    distrust_content(db);
    /* Until the file is known to be undamaged, closing must not write into it. */
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (tune_connection(db, err) < 0 || check_version(db, err) < 0 ||
        (check == DF_DB_CHECK_ALL && check_pages(db, err) < 0))
        return -1;
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

int df_db_open(const char *path, enum df_db_check check, struct df_db **ret, struct df_err *err)
{
    DF_CLEANUP(cleanup_db) struct df_db *db = calloc(1, sizeof(*db));
    if (!db || !(db->path = strdup(path)))
        return df_fail_oom(err);
    if (!df_fs_exists(path) && make_file(path, err) < 0)
        return -1;
    if (check_owner(path, err) < 0 || close_to_others(path, err) < 0 ||
        connect_to(db, check, err) < 0)
        return -1;
    *ret = DF_TAKE(db);
    return 0;
}

/* ---- copying -------------------------------------------------------------------------------- */

/* The copy is written with a rollback journal. Readers beside a writer need the log. */
static int use_log(const char *path, struct df_err *err)
{
    DF_CLEANUP(cleanup_db) struct df_db *db = NULL;
    if (df_db_open(path, DF_DB_CHECK_HEADER, &db, err) < 0)
        return -1;
    return df_db_run(db, "PRAGMA journal_mode = WAL", NULL, err);
}

int df_db_copy(struct df_db *db, const char *path, struct df_err *err)
{
    if (df_db_run(db, "VACUUM INTO ?1", DF_DB_ARGS(DF_DB_T(path)), err) < 0)
        return -1;
    return use_log(path, err);
}
