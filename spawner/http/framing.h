/*
 * framing.h - the last check of a request's head: what two parsers could read differently (request
 * smuggling). libmicrohttpd at its strict level has refused folded lines, blanks before a colon,
 * lone CR and LF, NUL, unknown codings and malformed lengths. Here: doubled headers, names that are
 * no tokens, control characters in values.
 */
#ifndef DF_SPAWNER_HTTP_FRAMING_H
#define DF_SPAWNER_HTTP_FRAMING_H

#include "spawner/http/request.h"

#define DF_BODY_UNKNOWN UINT64_MAX

/* *ret_length: the announced length of the body, or DF_BODY_UNKNOWN for chunks. After a failure
 * (class USER) nobody knows where the request ends: the connection must be closed. */
int df_framing_check(const struct df_request *req, uint64_t *ret_length,
                     struct df_err *err) DF_MUST_CHECK;

#endif
