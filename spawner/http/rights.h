/*
 * rights.h - what a request's caller may do with an executor, its runs and their steps
 * (model/grant.h), and the check of each route that is about one (route.h). Who may not view an
 * executor gets the answer that one which does not exist gets. Thread rule: as request.h.
 */
#ifndef DF_SPAWNER_HTTP_RIGHTS_H
#define DF_SPAWNER_HTTP_RIGHTS_H

#include "spawner/http/request.h"

/* Sets req->verbs. NOT_FOUND if the caller may not view what the route is about, as if it did not
 * exist; DENIED Forbidden if a verb of the route lacks. It is asked before the body and after it:
 * meanwhile another executor may have got the name. */
int df_rights_check(struct df_request *req, struct df_err *err) DF_MUST_CHECK;

/* May the caller view this document? A Run and a TaskAction are viewed with their executor; what
 * belongs to none needs the verb on all. */
int df_rights_views(const struct df_request *req, enum df_kind kind, const cJSON *doc, bool *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* True if the caller may view everything: lists need not ask about each document. */
bool df_rights_view_all(const struct df_request *req);

/* To be returned when a request about an executor has failed. Whoever may not view everything is
 * not told whose or for which executors the other things are that are in the way. Always -1. */
int df_rights_refuse(const struct df_request *req, struct df_err *err);

#endif
