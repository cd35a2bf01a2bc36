/*
 * audit_rows.h - the audit trail as rows of the database: adding, reading, and the end of its
 * oldest entries. The id of a row is the sequence of its entry in the chain
 * (model/audit_chain.h). Thread rule: as database.h.
 */
#ifndef DF_AUDIT_ROWS_H
#define DF_AUDIT_ROWS_H

#include "spawner/model/audit_chain.h"
#include "spawner/model/audit_filter.h"
#include "spawner/store/documents/database.h"
#include "spawner/store/store.h"

/* Adds an entry behind the last one; a df_db_body, arg is one of these. Behind an entry of an older
 * dayfly, which has no hash, the chain begins with an entry that says so; without a key it does not
 * begin. */
struct df_audit_addition {
    const cJSON *entry;
    const unsigned char *key; /* or NULL */
};
int df_audit_rows_add(struct df_db *db, void *arg, struct df_err *err) DF_MUST_CHECK;

/* Appends at most limit entries to page, the newest first. before: those with a smaller id.
 * *ret_last: the id after which the next page begins; 0: this was the last one. A page of large
 * entries may have fewer than limit. filter NULL: all, in the order of the chain. A row that is
 * damaged is an entry with its sequence alone. */
int df_audit_rows_list(struct df_db *db, const struct df_audit_filter *filter, int64_t before,
                       int limit, cJSON *page, int64_t *ret_last, struct df_err *err) DF_MUST_CHECK;

int df_audit_rows_measure(struct df_db *db, int64_t *ret_count, int64_t *ret_bytes,
                          struct df_err *err) DF_MUST_CHECK;

/* Finds the last of the oldest entries that are to go. *ret_count: how many they are; 0: *ret is
 * not set. Fails if they are no whole end of the chain: a checkpoint would hide that. key NULL:
 * their seals are not checked. */
int df_audit_rows_find_cut(struct df_db *db, const struct df_audit_limits *limits,
                           const unsigned char *key, struct df_audit_place *ret, int64_t *ret_count,
                           struct df_err *err) DF_MUST_CHECK;
/* Removes some of the entries up to this sequence, at most so many that other writers hardly wait;
 * a df_db_body, arg is one of these. */
struct df_audit_removal {
    int64_t up_to;
    int64_t count; /* of the last call; 0: none is left */
};
int df_audit_rows_remove(struct df_db *db, void *arg, struct df_err *err) DF_MUST_CHECK;

#endif
