/*
 * backend.h - what every backend of the documents does alike: pages, names, and what it says when it
 * refuses. Thread rule: pure functions.
 */
#ifndef DF_STORE_BACKEND_H
#define DF_STORE_BACKEND_H

#include "spawner/model/model.h"

/* The document's name, borrowed. USER when it has none that is proper. */
int df_backend_name(const cJSON *doc, const char **ret, struct df_err *err) DF_MUST_CHECK;

/* The document as text, within its cap; the caller frees. */
int df_backend_print(enum df_kind kind, const char *name, const cJSON *doc, char **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Is old the document that doc was made from? CONFLICT Conflict when not. */
int df_backend_check_unchanged(enum df_kind kind, const cJSON *doc, const cJSON *old,
                               struct df_err *err) DF_MUST_CHECK;

/* Always -1. */
int df_backend_fail_absent(enum df_kind kind, const char *key, struct df_err *err);
int df_backend_fail_exists(enum df_kind kind, const char *name, struct df_err *err);
int df_backend_fail_conflict(enum df_kind kind, const char *name, struct df_err *err);
int df_backend_fail_other(enum df_kind kind, const char *name,
                          struct df_err *err); /* another uid */

/* The order behind which a page begins. cursor may be NULL. */
int df_page_start(const char *cursor, bool newest_first, int64_t *ret,
                  struct df_err *err) DF_MUST_CHECK;

/* How many documents a page has: 0 is the default, and no more than the most. */
int df_page_limit(int asked, int *ret, struct df_err *err) DF_MUST_CHECK;

/* The cursor of a page that ended with this order (0: the list has ended, and there is none). The
 * caller frees *ret; ret may be NULL. */
int df_page_cursor(int64_t last, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
