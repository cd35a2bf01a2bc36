/*
 * sentinel.h - who is the primary; used inside common/redis only. Include it first, as tls.h.
 */
#ifndef DF_REDIS_SENTINEL_H
#define DF_REDIS_SENTINEL_H

#include "common/redis/node.h"

/* Asks one sentinel after the other for the primary of this name until one names a server that says
 * that it is one; primary is connected to it then. access: of the sentinels; data: of the primary.
 * RETRY: none knows one; DENIED: of the last one that was asked. */
int df_redis_find_primary(const char *name, struct df_redis_node *sentinels, size_t count,
                          const struct df_redis_access *access, const struct df_redis_access *data,
                          struct df_redis_node *primary, struct df_err *err) DF_MUST_CHECK;

#endif
