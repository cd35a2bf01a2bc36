/*
 * changes.h - how many objects a plan or an apply changes, by kind. Whoever counts, stores, sums up
 * or shows such figures does it with these functions, which walk one table: a further kind of
 * change is a further row. Thread rule: pure functions, any thread.
 */
#ifndef DF_CHANGES_H
#define DF_CHANGES_H

#include "common/base/buf.h"
#include "common/json/json.h"

enum df_changes_kind {
    DF_CHANGES_ADD,
    DF_CHANGES_CHANGE,
    DF_CHANGES_DESTROY,
    DF_CHANGES_IMPORT,
    DF_CHANGES_MOVE,   /* to another address */
    DF_CHANGES_FORGET, /* leaves the state, and is not destroyed */
    DF_CHANGES_DRIFT,  /* was changed by others than the tool */
    DF_CHANGES_OTHER,  /* of a kind that this version does not know */
    DF_CHANGES_KINDS
};

struct df_changes {
    int64_t of[DF_CHANGES_KINDS];
};

/* The member of planSummary: "add". */
const char *df_changes_name(enum df_changes_kind kind);
/* The kind that the tool counts under this name in its `change_summary`; OTHER for an unknown
 * one. */
enum df_changes_kind df_changes_kind_of(const char *counted);

/* Of all kinds together. */
int64_t df_changes_total(const struct df_changes *c);

/* All kinds as members of `summary`. */
int df_changes_write(const struct df_changes *c, cJSON *summary, struct df_err *err) DF_MUST_CHECK;
/* A member that is absent counts as 0. USER if one is no number from 0 to INT32_MAX; *ret is set
 * then, too, with 0 for that one. */
int df_changes_read(const cJSON *summary, struct df_changes *ret, struct df_err *err);

#define DF_CHANGES_WORDS 256 /* room for the words of all kinds */

/* In a sentence: "1 to add, 0 to change, 0 to destroy, 2 to forget"; is_done: "1 added, ...". Of
 * kinds after the third only those that are not 0. */
void df_changes_words(const struct df_changes *c, bool is_done, char *to, size_t size);
/* In a column: "+1 ~0 -0 forget 2". */
void df_changes_column(const struct df_changes *c, struct df_buf *out);

#endif
