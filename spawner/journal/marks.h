/*
 * marks.h - how far somebody is with each of many documents: name and uid → number. A document that
 * was made anew under the same name begins anew. Thread rule: none; one owner.
 */
#ifndef DF_NEWS_MARKS_H
#define DF_NEWS_MARKS_H

#include "common/base/err.h"

/* Zero-initialised it is empty. */
struct df_marks {
    void *by_name; /* tsearch(3) */
};

void df_marks_free(struct df_marks *m);

/* fallback: when there is none for this document. */
int df_marks_get(const struct df_marks *m, const char *name, const char *uid, int fallback);
int df_marks_set(struct df_marks *m, const char *name, const char *uid, int n,
                 struct df_err *err) DF_MUST_CHECK;
void df_marks_drop(struct df_marks *m, const char *name);

#endif
