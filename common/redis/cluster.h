/*
 * cluster.h - which server of a cluster has a key; used inside common/redis only. Include it first,
 * as tls.h.
 *
 * Nothing is asked for in advance: a server that does not have a key names the one that has it, and
 * that is remembered. One client uses a few keys. Thread rule: one thread.
 */
#ifndef DF_REDIS_CLUSTER_H
#define DF_REDIS_CLUSTER_H

#include "common/base/limits.h"
#include "common/redis/node.h"

#define DF_REDIS_SLOTS 16384

struct df_redis_cluster {
    struct df_redis_node nodes[DF_LIMIT_REDIS_NODES];
    size_t len;
    unsigned char owner[DF_REDIS_SLOTS]; /* index into nodes and 1; 0: not known */
};

/* NULL if there is no memory. */
struct df_redis_cluster *df_redis_cluster_new(void);
void df_redis_cluster_free(struct df_redis_cluster *c); /* NULL is fine */
int df_redis_cluster_add(struct df_redis_cluster *c, const char *address,
                         struct df_err *err) DF_MUST_CHECK;

/* The slot of a key: CRC-16 of it, or of what stands between its first { and the next }. */
unsigned df_redis_slot(const void *key, size_t n);

/* A connected server for the slot: the one that is known to have it, else any that answers.
 * Failures as of df_redis_node_connect(), of the last one. */
int df_redis_cluster_pick(struct df_redis_cluster *c, unsigned slot,
                          const struct df_redis_access *a, struct df_redis_node **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* What MOVED or ASK of this server says: the other one, *ret, which may not be connected; borrowed,
 * and valid until the cluster is freed. MOVED is remembered. *ret_ask: it is ASK. */
int df_redis_cluster_follow(struct df_redis_cluster *c, const struct df_redis_node *from,
                            const redisReply *reply, struct df_redis_node **ret, bool *ret_ask,
                            struct df_err *err) DF_MUST_CHECK;

#endif
