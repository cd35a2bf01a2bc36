/*
 * validate.h - authenticates and validates a request before its body is received: the route exists,
 * the caller may use it, and the route accepts a body of this type and size.
 */
#ifndef DF_SPAWNER_HTTP_VALIDATE_H
#define DF_SPAWNER_HTTP_VALIDATE_H

#include "spawner/http/request.h"

/* Sets route, params, credentials and caller of the request, whose target has been parsed. On
 * failure res->allow may be set. length: of the body (framing.h). */
int df_request_validate(struct df_request *req, struct df_response *res, uint64_t length,
                        struct df_err *err) DF_MUST_CHECK;

/* Call it when the body is complete: parses JSON or YAML, according to the media type, into
 * req->json. */
int df_request_parse_body(struct df_request *req, struct df_err *err) DF_MUST_CHECK;

#endif
