/*
 * audit.h - the audit trail: who requested which change, and its outcome.
 *
 * Each call of a route with an audit word is recorded once, refused calls too. A refused login is
 * recorded on every route, but at most once a second and with the number of refused logins that
 * were not recorded, so that nobody can fill the disk with failed logins.
 */
#ifndef DF_SPAWNER_HTTP_AUDIT_H
#define DF_SPAWNER_HTTP_AUDIT_H

#include "spawner/http/request.h"

/* why->cls NONE: the request succeeded. If the entry cannot be stored, this is logged, and the
 * response stays the same. */
void df_audit_request(struct df_request *req, const struct df_response *res,
                      const struct df_err *why);

#endif
