/*
 * redis.h - commands to a Redis: one server, Sentinel or Cluster, with TLS where wished.
 *
 * Connects at the first command, again after a failure, and follows MOVED, ASK and a new primary.
 * Arguments and answers are bytes. Messages never contain a password or an argument.
 *
 * With TLS a certificate must be of an authority that is trusted, and for the address that was
 * connected to or for one of the configured hosts: Sentinel and Cluster announce their servers by
 * address, which certificates seldom name.
 * Thread rule: one client, one thread. The program ignores SIGPIPE.
 */
#ifndef DF_REDIS_H
#define DF_REDIS_H

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_redis; /* opaque */

/* Borrowed: df_redis_new() copies. */
struct df_redis_options {
    const char *host; /* of the one server; not used with sentinels or nodes */
    int port;
    const char *user;     /* or NULL: AUTH with the password alone */
    const char *password; /* or NULL: no AUTH */
    bool tls;
    const char *ca_pem;                            /* PEM text to trust; NULL: the system's */
    const struct df_strs *cluster_nodes;           /* "host:port"; NULL or empty: no Cluster */
    int max_redirects;                             /* of a cluster; 0: 5 */
    const char *sentinel_primary;                  /* the primary's name; with sentinels */
    const struct df_strs *sentinels;               /* "host:port"; NULL or empty: no Sentinel */
    const char *sentinel_user, *sentinel_password; /* or NULL */
    int64_t timeout_ms;                            /* of connecting, and of one answer; 0: 10000 */
};
/* USER: an address or the certificates cannot be read. Does not connect. */
int df_redis_new(const struct df_redis_options *o, struct df_redis **ret,
                 struct df_err *err) DF_MUST_CHECK;
void df_redis_free(struct df_redis *r); /* NULL is fine */

struct df_redis_arg {
    const void *bytes;
    size_t n;
};
#define DF_REDIS_TEXT(s) ((struct df_redis_arg){(s), strlen(s)})

enum df_redis_kind { DF_REDIS_NIL, DF_REDIS_INTEGER, DF_REDIS_BYTES, DF_REDIS_LIST };
struct df_redis_answer {
    enum df_redis_kind kind;
    int64_t integer;
    struct df_buf bytes;           /* of a status or a bulk string */
    struct df_redis_answer *items; /* of a list: `integer` of them */
};
void df_redis_answer_free(struct df_redis_answer *a);
#define DF_REDIS_ANSWER DF_CLEANUP(df_redis_answer_free) struct df_redis_answer

/* Sends one command, of which args[1] is the key in a cluster (args[2] of XGROUP). One attempt,
 * besides redirects; what was sent may have been executed when the failure is RETRY. USER: the
 * server refuses the command; CONFLICT: what it creates is there (BUSYGROUP); DENIED: the password,
 * the rights, or the certificate; LIMIT: an answer of more than DF_LIMIT_REDIS_ANSWER. ret may be
 * NULL. */
int df_redis_command(struct df_redis *r, const struct df_redis_arg *args, size_t n,
                     struct df_redis_answer *ret, struct df_err *err) DF_MUST_CHECK;
/* Many commands of one key in one round trip; the first refusal is the failure. *ret_done, also on
 * failure: so many of the first ones are known to be executed. */
int df_redis_pipeline(struct df_redis *r, const struct df_redis_arg *const *commands,
                      const size_t *args, size_t n, size_t *ret_done,
                      struct df_err *err) DF_MUST_CHECK;

#endif
