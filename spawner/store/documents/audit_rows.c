#include "spawner/store/documents/audit_rows.h"

int df_audit_rows_measure(struct df_db *db, int64_t *ret_count, int64_t *ret_bytes,
                          struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT count(*), ifnull(sum(length(body)), 0) FROM audit", NULL, &q, err) <
            0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret_count = row ? sqlite3_column_int64(q, 0) : 0;
    *ret_bytes = row ? sqlite3_column_int64(q, 1) : 0;
    return 0;
}

/* Times of one format are in order as texts. Before ?1 all go; before ?2 those that are not among
 * the newest ?3. */
#define IS_OLD                                                                                     \
    "(json_extract(body, '$.at') < ?1 OR (json_extract(body, '$.at') < ?2 AND id <= (SELECT "      \
    "max(id) FROM audit) - ?3))"
#define BATCH "1000"

static const char count_old[] = "SELECT count(*) FROM audit WHERE " IS_OLD;
/* Entries are about in the order of their times: when none of the oldest goes, none does. */
static const char remove_old[] =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT " BATCH ") AND " IS_OLD
    " RETURNING id";

struct df_audit_pruning df_audit_pruning_of(const struct df_audit_limits *limits)
{
    struct df_audit_pruning p = {.keep = limits->keep};
    (void)df_time_format(limits->before_us, p.before);
    (void)df_time_format(limits->keep ? limits->never_after_us : 0, p.never_after);
    return p;
}

static int begin(struct df_db *db, const char *sql, const struct df_audit_pruning *p,
                 sqlite3_stmt **ret, struct df_err *err)
{
    return df_db_query(db, sql,
                       DF_DB_ARGS(DF_DB_T(p->before), DF_DB_T(p->never_after), DF_DB_I(p->keep)),
                       ret, err);
}

int df_audit_rows_count(struct df_db *db, struct df_audit_pruning *p, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (begin(db, count_old, p, &q, err) < 0 || df_db_step(db, q, &row, err) < 0)
        return -1;
    p->count = row ? sqlite3_column_int64(q, 0) : 0;
    return 0;
}

int df_audit_rows_prune(struct df_db *db, void *arg, struct df_err *err)
{
    struct df_audit_pruning *p = arg;
    DF_DB_STMT sqlite3_stmt *q = NULL;
    int64_t n = 0;
    if (begin(db, remove_old, p, &q, err) < 0)
        return -1;
    for (bool row = true; row; n += row)
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
    p->count = n;
    return 0;
}
