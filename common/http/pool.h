/*
 * pool.h - clients for one peer, shared by threads: each call borrows one, with its connections.
 * Thread rule: any thread.
 */
#ifndef DF_HTTP_POOL_H
#define DF_HTTP_POOL_H

#include "common/http/http.h"

struct df_http_pool; /* opaque */

/* The options, and what they point to, are borrowed: they must live on. */
int df_http_pool_new(const struct df_http_options *options, struct df_http_pool **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_http_pool_free(struct df_http_pool *p); /* after all are given back; NULL is fine */

/* One that nobody else uses; the caller gives it back. */
int df_http_pool_take(struct df_http_pool *p, struct df_http **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Keeps it, or frees it beyond DF_LIMIT_HTTP_IDLE. */
void df_http_pool_give(struct df_http_pool *p, struct df_http *h);

#endif
