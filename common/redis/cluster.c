#include "common/redis/cluster.h"

#include "common/base/parse.h"

struct df_redis_cluster *df_redis_cluster_new(void)
{
    return calloc(1, sizeof(struct df_redis_cluster));
}

void df_redis_cluster_free(struct df_redis_cluster *c)
{
    for (size_t i = 0; c && i < c->len; i++)
        df_redis_node_free(&c->nodes[i]);
    free(c);
}

int df_redis_cluster_add(struct df_redis_cluster *c, const char *address, struct df_err *err)
{
    if (c->len == DF_LIMIT_REDIS_NODES)
        return df_fail(err, DF_ERR_LIMIT, "a cluster of Redis with more than %d servers",
                       DF_LIMIT_REDIS_NODES);
    if (df_redis_node_init(&c->nodes[c->len], address, err) < 0)
        return -1;
    c->len++;
    return 0;
}

/* CRC-16/XMODEM. */
static unsigned crc16(const unsigned char *p, size_t n)
{
    unsigned crc = 0;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)p[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021U : 0)) & 0xffff;
    }
    return crc;
}

unsigned df_redis_slot(const void *key, size_t n)
{
    const char *k = key, *open = memchr(k, '{', n);
    const char *close = open ? memchr(open, '}', n - (size_t)(open - k)) : NULL;
    if (close && close > open + 1)
        return crc16((const unsigned char *)open + 1, (size_t)(close - open - 1)) % DF_REDIS_SLOTS;
    return crc16(key, n) % DF_REDIS_SLOTS;
}

/* Nobody is there any more: whoever took its slots over will be named. */
static void forget(struct df_redis_cluster *c, size_t node)
{
    for (size_t i = 0; i < DF_REDIS_SLOTS; i++)
        if (c->owner[i] == node + 1)
            c->owner[i] = 0;
}

int df_redis_cluster_pick(struct df_redis_cluster *c, unsigned slot,
                          const struct df_redis_access *a, struct df_redis_node **ret,
                          struct df_err *err)
{
    struct df_err why = {0};
    size_t first = c->owner[slot] ? (size_t)c->owner[slot] - 1 : 0;
    for (size_t i = 0; i < c->len; i++) {
        struct df_redis_node *n = &c->nodes[(first + i) % c->len];
        if (df_redis_node_connect(n, a, &why) == 0) {
            *ret = n;
            return 0;
        }
        forget(c, (size_t)(n - c->nodes));
    }
    return df_err_pass(err, &why);
}

static int fail_redirect(const struct df_redis_node *from, struct df_err *err)
{
    return df_fail(err, DF_ERR_SYSTEM, "Redis %s:%d: a redirect that cannot be read", from->host,
                   from->port);
}

/* Finds it, or adds it. */
static int node_of(struct df_redis_cluster *c, const char *address, size_t *ret, struct df_err *err)
{
    struct df_redis_node wanted = {0};
    if (df_redis_node_init(&wanted, address, err) < 0)
        return -1;
    size_t i = 0;
    while (i < c->len &&
           !(c->nodes[i].port == wanted.port && df_streq(c->nodes[i].host, wanted.host)))
        i++;
    df_redis_node_free(&wanted);
    *ret = i;
    return i < c->len ? 0 : df_redis_cluster_add(c, address, err);
}

/* "MOVED 3999 10.0.0.1:6381"; without a host it is the server that said so. */
int df_redis_cluster_follow(struct df_redis_cluster *c, const struct df_redis_node *from,
                            const redisReply *reply, struct df_redis_node **ret, bool *ret_ask,
                            struct df_err *err)
{
    const char *p = strchr(reply->str, ' ');
    int64_t slot = 0;
    size_t node = 0;
    if (!p || !df_scan_i64(&p, &slot) || slot < 0 || slot >= DF_REDIS_SLOTS || *p != ' ')
        return fail_redirect(from, err);
    p++;
    DF_FREE char *address = *p == ':' ? df_strf("%s%s", from->host, p) : strdup(p);
    if (!address)
        return df_fail_oom(err);
    if (node_of(c, address, &node, err) < 0)
        return -1;
    *ret_ask = df_redis_says(reply, "ASK");
    if (!*ret_ask)
        c->owner[slot] = (unsigned char)(node + 1);
    *ret = &c->nodes[node];
    return 0;
}
