/*
 * node.h - one server and the connection to it; used inside common/redis only. Include it first, as
 * tls.h. Thread rule: one thread.
 */
#ifndef DF_REDIS_NODE_H
#define DF_REDIS_NODE_H

#include "common/redis/tls.h"

#include "common/redis/redis.h"

/* Who connects, and how. Borrowed. */
struct df_redis_access {
    const char *user, *password;    /* or NULL */
    const struct df_redis_tls *tls; /* NULL: without */
    int64_t timeout_ms;
};

struct df_redis_node {
    char *host; /* owned, without brackets */
    int port;
    redisContext *c; /* NULL: not connected */
};

/* address: "host:port". USER: it is none. */
int df_redis_node_init(struct df_redis_node *n, const char *address,
                       struct df_err *err) DF_MUST_CHECK;
int df_redis_node_set(struct df_redis_node *n, const char *host, int port,
                      struct df_err *err) DF_MUST_CHECK; /* another address; drops the connection */
void df_redis_node_drop(struct df_redis_node *n);        /* the connection */
void df_redis_node_free(struct df_redis_node *n);        /* what is in it */

/* Connects and authenticates unless that is done. RETRY: nobody is there; DENIED: the password or
 * the certificate. */
int df_redis_node_connect(struct df_redis_node *n, const struct df_redis_access *a,
                          struct df_err *err) DF_MUST_CHECK;

/* Commands, and the answers that are there: of the first `done`. */
struct df_redis_batch {
    const struct df_redis_arg *const *commands;
    const size_t *args; /* how many each has */
    size_t n, done;
    redisReply **replies; /* room for n; the caller frees the first done */
};

/* Sends the commands that have no answer yet, at once, and reads an answer to each, errors of the
 * server included. A failure (RETRY, LIMIT) drops the connection; b->done counts then, too. */
int df_redis_node_exchange(struct df_redis_node *n, const struct df_redis_access *a,
                           struct df_redis_batch *b, struct df_err *err) DF_MUST_CHECK;
/* The same for one command; *ret: the caller frees it. */
int df_redis_node_ask(struct df_redis_node *n, const struct df_redis_access *a,
                      const struct df_redis_arg *command, size_t args, redisReply **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Fails with what the server said, and the class that redis.h describes. Arguments, which it
 * quotes, are cut off. */
int df_redis_fail_reply(const struct df_redis_node *n, const redisReply *reply, struct df_err *err);

static inline void df_cleanup_redis_reply(redisReply **r)
{
    freeReplyObject(*r);
}
#define DF_REDIS_REPLY DF_CLEANUP(df_cleanup_redis_reply) redisReply

/* Does the text of an error begin with this word? */
bool df_redis_says(const redisReply *reply, const char *word);

#endif
