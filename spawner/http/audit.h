/*
 * audit.h - the audit trail: who requested which change, and its outcome.
 *
 * Each call of a route with an audit word is recorded once, refused calls too, with the address
 * that it came from. A refused login (401) and a caller who may not do what he asks for (403) are
 * recorded on every route, but only so many in a second, and with the number of those before that
 * were not recorded: nobody can fill the disk with what is refused.
 */
#ifndef DF_SPAWNER_HTTP_AUDIT_H
#define DF_SPAWNER_HTTP_AUDIT_H

#include "spawner/http/request.h"

/* why->cls NONE: the request succeeded. If the entry cannot be stored, this is logged, and the
 * response stays the same. */
void df_audit_request(struct df_request *req, const struct df_response *res,
                      const struct df_err *why);

#endif
