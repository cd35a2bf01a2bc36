/*
 * tls.h - TLS of a connection to Redis; used inside common/redis only. Include it first: hiredis
 * and OpenSSL name what banned.h forbids from then on. Thread rule: one thread.
 */
#ifndef DF_REDIS_TLS_H
#define DF_REDIS_TLS_H

#include <hiredis/hiredis.h>

#include "common/base/strs.h"

struct df_redis_tls; /* opaque */

/* ca_pem: what is trusted; NULL: the system's. names: the hosts of which a certificate may be,
 * borrowed. */
int df_redis_tls_new(const char *ca_pem, const struct df_strs *names, struct df_redis_tls **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_redis_tls_free(struct df_redis_tls *t); /* NULL is fine */

/* Shakes hands on a new connection to host, and checks the certificate. DENIED: it is not trusted,
 * or of another host. After a failure c is of no use. */
int df_redis_tls_begin(const struct df_redis_tls *t, redisContext *c, const char *host,
                       struct df_err *err) DF_MUST_CHECK;

#endif
