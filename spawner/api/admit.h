/*
 * admit.h - everything that is asked of a request before its body is read: is there such a route,
 * may this caller use it, is the body of a kind and size that it takes.
 */
#ifndef DF_API_ADMIT_H
#define DF_API_ADMIT_H

#include "spawner/api/exchange.h"

#define DF_BODY_UNKNOWN UINT64_MAX

/* Fills route, params, credentials and caller of the request, whose target has been parsed. On
 * failure res->allow may be set. ret_length (always set): the body's announced length, or
 * DF_BODY_UNKNOWN for chunks. */
int df_admit(struct df_request *req, struct df_response *res, uint64_t *ret_length,
             struct df_err *err) DF_MUST_CHECK;

/* The body is complete: reads JSON or YAML into req->json by the request's media type. */
int df_admit_body(struct df_request *req, struct df_err *err) DF_MUST_CHECK;

#endif
