/*
 * connections.h - cuts off peers that hold a connection without ever completing a request head.
 *
 * libmicrohttpd's idle timeout restarts with every byte, so a peer that sends one byte a minute
 * would hold its thread forever (slow loris). This list has each connection from accept to close.
 * While a connection has no request in flight, it must complete a request head in head_ms, however
 * many bytes arrive. request.c limits the time of bodies. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_CONNECTIONS_H
#define DF_SPAWNER_HTTP_CONNECTIONS_H

#include "common/base/err.h"

struct df_connections; /* opaque */
struct df_connection;  /* one; opaque */

/* head_ms: how long a connection may wait for a complete request head. */
int df_connections_new(int64_t head_ms, struct df_connections **ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_connections_free(struct df_connections *c);

/* NULL if out of memory: then the connection has no time limit. owner: for
 * df_connection_owner(). */
struct df_connection *df_connections_add(struct df_connections *c, int fd, void *owner);
void *df_connection_owner(const struct df_connection *one); /* NULL for NULL */
/* Call it before the descriptor is closed. NULL is fine. */
void df_connections_remove(struct df_connections *c, struct df_connection *one);

/* busy true: a request head is complete. False: its response was sent, and the connection waits for
 * the next request. one may be NULL. */
void df_connections_busy(struct df_connections *c, struct df_connection *one, bool busy);

size_t df_connections_count(struct df_connections *c);

#endif
