/*
 * trail.h - the audit trail: who asked for which change, and what came of it.
 *
 * Every call of a route with an audit word is recorded once, refused ones too. A refused login is
 * recorded whatever the route, but at most once a second, with the number of those in between: the
 * trail must not be a way to fill the disk.
 */
#ifndef DF_API_TRAIL_H
#define DF_API_TRAIL_H

#include "spawner/api/exchange.h"

/* why->cls NONE: it was done. A trail that cannot be written is logged and stops nothing. */
void df_trail(struct df_request *req, const struct df_response *res, const struct df_err *why);

#endif
