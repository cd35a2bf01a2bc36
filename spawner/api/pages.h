/*
 * pages.h - lists of documents, a page at a time.
 */
#ifndef DF_API_PAGES_H
#define DF_API_PAGES_H

#include "spawner/api/exchange.h"

/* Answers with a page by the request's limit, cursor, namePrefix, label and order. label: a label
 * that every item has, whatever the request says; or NULL. newest_first: the order when the request
 * names none. */
int df_respond_page(const struct df_request *req, struct df_response *res, enum df_kind kind,
                    const char *label, bool newest_first, struct df_err *err) DF_MUST_CHECK;

/* The documents of such a page, whole: what only the spawner may see is in them. *ret_cursor as in
 * df_store_list(). */
int df_request_page(const struct df_request *req, enum df_kind kind, const char *label,
                    bool newest_first, cJSON **ret, char **ret_cursor,
                    struct df_err *err) DF_MUST_CHECK;

#endif
