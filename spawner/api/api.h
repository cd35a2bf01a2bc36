/*
 * api.h - the HTTP server: a routes table over control/ and steps/, thread per connection, plain
 * blocking handlers.
 */
#ifndef DF_API_H
#define DF_API_H

#include "spawner/control/control.h"

struct df_api; /* opaque */

/* Listens on config->listen (port 0: any; the same port as last time is tried first when
 * <data>/endpoint says one) and serves. Sets s->server_url before the first answer. */
int df_api_start(struct df_spawner *s, struct df_api **ret, struct df_err *err) DF_MUST_CHECK;
/* Ends followers with a final event, lets requests in flight finish (at most 5 s), closes. */
void df_api_stop(struct df_api *a);

#endif
