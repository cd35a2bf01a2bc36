/*
 * audit_rows.h - the audit trail as rows of the database: its size, and the end of its oldest
 * entries. Thread rule: as database.h.
 */
#ifndef DF_AUDIT_ROWS_H
#define DF_AUDIT_ROWS_H

#include "common/base/clock.h"
#include "spawner/store/documents/database.h"
#include "spawner/store/store.h"

int df_audit_rows_measure(struct df_db *db, int64_t *ret_count, int64_t *ret_bytes,
                          struct df_err *err) DF_MUST_CHECK;

struct df_audit_pruning {
    char before[DF_TIME_LEN], never_after[DF_TIME_LEN];
    int64_t keep;
    int64_t count; /* of the last call */
};
struct df_audit_pruning df_audit_pruning_of(const struct df_audit_limits *limits);

/* Counts the entries that would go. */
int df_audit_rows_count(struct df_db *db, struct df_audit_pruning *p,
                        struct df_err *err) DF_MUST_CHECK;
/* Removes some of them, at most so many that other writers hardly wait; a df_db_body, arg is the
 * pruning. count 0: none is left. */
int df_audit_rows_prune(struct df_db *db, void *arg, struct df_err *err) DF_MUST_CHECK;

#endif
