/*
 * backend.h - what the backends of the document store share: names, checks, failures, pages.
 * Thread rule: pure functions.
 */
#ifndef DF_STORE_BACKEND_H
#define DF_STORE_BACKEND_H

#include "spawner/model/model.h"

/* The document's name, borrowed. USER if it is missing or not a DNS label. */
int df_backend_name(const cJSON *doc, const char **ret, struct df_err *err) DF_MUST_CHECK;

/* The document as text; the caller frees it. LIMIT if it is larger than DF_LIMIT_DOCUMENT. */
int df_backend_print(enum df_kind kind, const char *name, const cJSON *doc, char **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* What is stored of a document. */
struct df_backend_known {
    const char *version, *uid;
};
/* CONFLICT Conflict if doc is not based on the stored document. */
int df_backend_check_unchanged(enum df_kind kind, const cJSON *doc,
                               const struct df_backend_known *known,
                               struct df_err *err) DF_MUST_CHECK;

/* Always -1. */
int df_backend_fail_exists(enum df_kind kind, const char *name, struct df_err *err);
int df_backend_fail_conflict(enum df_kind kind, const char *name, struct df_err *err);
int df_backend_fail_other(enum df_kind kind, const char *name,
                          struct df_err *err); /* another uid */

/* The creation number after which a page begins. cursor may be NULL. */
int df_page_start(const char *cursor, bool newest_first, int64_t *ret,
                  struct df_err *err) DF_MUST_CHECK;

/* The number of documents of a page. asked: 0 for the default; larger values are cut to the
 * maximum. */
int df_page_limit(int asked, int *ret, struct df_err *err) DF_MUST_CHECK;

/* The cursor of a page whose last document has this creation number; NULL for 0, the end of the
 * list. The caller frees *ret; ret may be NULL. */
int df_page_cursor(int64_t last, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
