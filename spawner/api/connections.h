/*
 * connections.h - cuts off peers that hold a connection without ever completing a request head.
 *
 * libmicrohttpd's idle timeout starts anew with every byte, so a peer that sends one byte a minute
 * would hold its thread for ever (slow loris). Each connection is known here from accept to close;
 * while no request is under way on it, the time since it began to wait counts, however many bytes
 * trickle in. Bodies are watched by exchange.c, which sees them arrive. Thread rule: any thread.
 */
#ifndef DF_API_CONNECTIONS_H
#define DF_API_CONNECTIONS_H

#include "common/base/err.h"

struct df_connections; /* opaque */
struct df_connection;  /* one; opaque */

/* head_ms: how long a connection may wait for a complete request head. */
int df_connections_new(int64_t head_ms, struct df_connections **ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_connections_free(struct df_connections *c);

/* NULL on no memory: that connection is then not watched. owner: what df_connection_owner() gives
 * back. */
struct df_connection *df_connections_add(struct df_connections *c, int fd, void *owner);
void *df_connection_owner(const struct df_connection *one); /* NULL for NULL */
/* Before its descriptor is closed. NULL is fine. */
void df_connections_remove(struct df_connections *c, struct df_connection *one);

/* A request head is complete (true), or its answer was sent and the next is waited for (false).
 * NULL is fine. */
void df_connections_busy(struct df_connections *c, struct df_connection *one, bool busy);

size_t df_connections_count(struct df_connections *c);

#endif
