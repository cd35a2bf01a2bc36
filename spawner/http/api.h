/*
 * api.h - the HTTP server: one thread for each connection, blocking handlers, one table of routes.
 */
#ifndef DF_SPAWNER_HTTP_API_H
#define DF_SPAWNER_HTTP_API_H

#include "spawner/http/route.h"
#include "spawner/spawner.h"

struct df_api; /* opaque */

/* Listens on config->listen and serves requests. With port 0 it listens on the port in
 * <data>/endpoint if that is free, else on any port. Sets s->server_url before the first
 * response. */
int df_api_start(struct df_spawner *s, const struct df_route_table *routes, struct df_api **ret,
                 struct df_err *err) DF_MUST_CHECK;
/* Serves further routes on an address of their own, over plain HTTP: their gates check who asks.
 * key names the address in messages. Requests are not forwarded to a leader. Stop it before the
 * API. */
int df_api_start_side(struct df_spawner *s, const struct df_route_table *routes, const char *key,
                      const char *listen, struct df_api **ret, struct df_err *err) DF_MUST_CHECK;
/* Ends streams with a final event, waits at most 5 s for requests in flight, and closes all
 * connections. */
void df_api_stop(struct df_api *a);

#endif
