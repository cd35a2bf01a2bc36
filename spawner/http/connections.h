/*
 * connections.h - all connections of the server: how many each kind of peer may have, and how long
 * each may take.
 *
 * A connection is a stranger's until a request on it has shown a good token. Strangers have the
 * places that the known leave. When there is none, a newcomer takes the place of the oldest
 * stranger of the network address that has the most: nobody is refused because others share their
 * address (a Service, a proxy), and a request that comes at once is answered long before its turn.
 * Callers, steps and admins have shares (connections.c) that the others cannot take.
 *
 * libmicrohttpd's idle timeout restarts with every byte, so each connection also has a time by
 * which the peer must be done with what it does: sending a head, reading an answer. The overdue are
 * cut. request.c limits the time of bodies. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_CONNECTIONS_H
#define DF_SPAWNER_HTTP_CONNECTIONS_H

#include <sys/socket.h>

#include "common/base/err.h"
#include "spawner/http/intake.h"

struct df_connections; /* opaque */
struct df_connection;  /* one; opaque */

enum df_share {
    DF_SHARE_STRANGERS,
    DF_SHARE_CALLERS, /* roles read and write */
    DF_SHARE_STEPS,   /* runners, and tofu with its state */
    DF_SHARE_ADMINS,
};
#define DF_SHARES 4

int df_connections_new(struct df_connections **ret, struct df_err *err) DF_MUST_CHECK;
void df_connections_free(struct df_connections *c);

/* A stranger's connection, with DF_LIMIT_HTTP_HEAD_SECONDS for its first head. May cut another one.
 * peer: its address, or NULL. owner: for df_connection_owner(). NULL if out of memory: then the
 * connection has no limits. */
struct df_connection *df_connections_add(struct df_connections *c, int fd,
                                         const struct sockaddr *peer, void *owner);
void *df_connection_owner(const struct df_connection *one); /* NULL for NULL, here and below */
struct df_intake *df_connection_intake(struct df_connection *one);
/* Call it before the descriptor is closed. NULL is fine, here and below. */
void df_connections_remove(struct df_connections *c, struct df_connection *one);

/* The request on this connection is of `who` (a caller's name, a step's uid). LIMIT reason
 * TooManyRequests if that peer, or the share, has as many as it may; the connection then stays what
 * it was. */
int df_connections_admit(struct df_connections *c, struct df_connection *one, enum df_share share,
                         const char *who, struct df_err *err) DF_MUST_CHECK;
/* The answer is an event stream: of those a peer has a smaller number. */
int df_connections_follow(struct df_connections *c, struct df_connection *one,
                          struct df_err *err) DF_MUST_CHECK;

/* The request on this connection is a stranger's and has a body. DF_LIMIT_HTTP_FOREIGN of them are
 * in memory at a time: the first to have begun is cut. LIMIT reason TooManyRequests if all are
 * complete and being answered. */
int df_connections_receive(struct df_connections *c, struct df_connection *one,
                           struct df_err *err) DF_MUST_CHECK;
/* That body is complete and the answer is made of it now, or that is done. */
void df_connections_answer(struct df_connections *c, struct df_connection *one, bool answers);

/* What the peer does now must be done in so many seconds; -1: no limit. */
void df_connections_limit(struct df_connections *c, struct df_connection *one, int64_t seconds);
/* The answer was sent: the connection waits for the next request. */
void df_connections_wait(struct df_connections *c, struct df_connection *one);

size_t df_connections_count(struct df_connections *c);

#endif
