/*
 * cursors.h - a cursor for each of many documents: how many of its transitions a reader has got.
 *
 * A cursor belongs to a name and a uid: a document that was deleted and created again under the
 * same name begins anew. Thread rule: none; one owner.
 */
#ifndef DF_JOURNAL_CURSORS_H
#define DF_JOURNAL_CURSORS_H

#include "common/base/err.h"

/* Zero-initialised it is empty. */
struct df_cursors {
    void *by_name; /* tsearch(3) */
};

void df_cursors_free(struct df_cursors *m);

/* fallback: what to return if this document has no cursor. */
int df_cursors_get(const struct df_cursors *m, const char *name, const char *uid, int fallback);
int df_cursors_set(struct df_cursors *m, const char *name, const char *uid, int n,
                   struct df_err *err) DF_MUST_CHECK;
void df_cursors_drop(struct df_cursors *m, const char *name);

#endif
