/*
 * liveness.h - answers GET /livez on an address of its own (server.livez.listen), in plain HTTP and
 * by a thread of its own: whatever happens at the API's address, a probe learns that the process
 * lives. It serves nothing else, and needs no token.
 */
#ifndef DF_SPAWNER_HTTP_LIVENESS_H
#define DF_SPAWNER_HTTP_LIVENESS_H

#include "common/base/err.h"

struct df_liveness; /* opaque */

/* listen: host:port, or NULL: then *ret is NULL. The error message names the key and the
 * address. */
int df_liveness_start(const char *listen, struct df_liveness **ret,
                      struct df_err *err) DF_MUST_CHECK;
void df_liveness_stop(struct df_liveness *l); /* NULL is fine */

#endif
