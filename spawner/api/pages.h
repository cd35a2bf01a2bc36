/*
 * pages.h - responds with lists of documents, page by page.
 */
#ifndef DF_API_PAGES_H
#define DF_API_PAGES_H

#include "spawner/http/request.h"

/* Responds with a page according to the request's limit, cursor, namePrefix, label, order, and of
 * executors state and status, of runs phase.
 * label: an additional label that every item must have; or NULL. newest_first: the default order.
 */
int df_respond_page(const struct df_request *req, struct df_response *res, enum df_kind kind,
                    const char *label, bool newest_first, struct df_err *err) DF_MUST_CHECK;

/* Reads the documents of such a page, with the fields that only the spawner may see. *ret_cursor:
 * as in df_store_list(). */
int df_request_page(const struct df_request *req, enum df_kind kind, const char *label,
                    bool newest_first, cJSON **ret, char **ret_cursor,
                    struct df_err *err) DF_MUST_CHECK;

#endif
