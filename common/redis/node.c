/*
 * node.c - in order: addresses, the class of what a server refuses (class_of()), the connection,
 * the exchange. An exchange writes all commands of a batch, then reads their replies; b->done
 * counts the replies. After a failure the connection is closed, and df_redis_node_connect() opens
 * the next one.
 */
#include "common/redis/node.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

/* ---- addresses ---- */

int df_redis_node_set(struct df_redis_node *n, const char *host, int port, struct df_err *err)
{
    df_redis_node_drop(n);
    n->port = port;
    return df_str_set(&n->host, host, err);
}

int df_redis_node_init(struct df_redis_node *n, const char *address, struct df_err *err)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    int64_t port = 0;
    if (len && df_parse_i64(colon + 1, 1, 65535, &port, NULL) < 0)
        len = 0;
    if (len > 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    DF_FREE char *host = len ? strndup(address, len) : NULL;
    if (!len)
        return df_fail(err, DF_ERR_USER, "\"%.200s\" is no host:port of a Redis", address);
    return host ? df_redis_node_set(n, host, (int)port, err) : df_fail_oom(err);
}

void df_redis_node_drop(struct df_redis_node *n)
{
    if (n->c)
        redisFree(n->c);
    n->c = NULL;
}

void df_redis_node_free(struct df_redis_node *n)
{
    df_redis_node_drop(n);
    free(DF_TAKE(n->host));
}

/* ---- what a server refuses ---- */

bool df_redis_says(const redisReply *reply, const char *word)
{
    size_t n = strlen(word);
    return reply->type == REDIS_REPLY_ERROR && reply->len > n && reply->str[n] == ' ' &&
           memcmp(reply->str, word, n) == 0;
}

static enum df_err_class class_of(const redisReply *reply)
{
    static const struct {
        const char *word;
        enum df_err_class cls;
    } words[] = {
        {"NOAUTH", DF_ERR_DENIED},      {"WRONGPASS", DF_ERR_DENIED}, {"NOPERM", DF_ERR_DENIED},
        {"BUSYGROUP", DF_ERR_CONFLICT}, {"LOADING", DF_ERR_RETRY},    {"BUSY", DF_ERR_RETRY},
        {"READONLY", DF_ERR_RETRY},     {"TRYAGAIN", DF_ERR_RETRY},   {"MASTERDOWN", DF_ERR_RETRY},
        {"CLUSTERDOWN", DF_ERR_RETRY},  {"NOREPLICAS", DF_ERR_RETRY}, {"OOM", DF_ERR_RETRY},
        {"MISCONF", DF_ERR_RETRY},      {"MOVED", DF_ERR_RETRY},      {"ASK", DF_ERR_RETRY},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (df_redis_says(reply, words[i].word))
            return words[i].cls;
    return DF_ERR_USER;
}

int df_redis_fail_reply(const struct df_redis_node *n, const redisReply *reply, struct df_err *err)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return df_fail(err, DF_ERR_SYSTEM, "Redis %s:%d: an answer of an unexpected kind", n->host,
                       n->port);
    int shown = (int)strcspn(reply->str, "'`\"\r\n");
    return df_fail(err, class_of(reply), "Redis %s:%d: %.*s", n->host, n->port,
                   shown > 300 ? 300 : shown, reply->str);
}

/* ---- the connection ---- */

static struct timeval after(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}

static int authenticate(struct df_redis_node *n, const struct df_redis_access *a,
                        struct df_err *err)
{
    struct df_redis_arg auth[3] = {DF_REDIS_TEXT("AUTH")};
    DF_REDIS_REPLY *reply = NULL;
    size_t args = 1;
    if (a->user)
        auth[args++] = DF_REDIS_TEXT(a->user);
    auth[args++] = DF_REDIS_TEXT(a->password);
    if (df_redis_node_ask(n, a, auth, args, &reply, err) < 0)
        return -1;
    if (reply->type == REDIS_REPLY_STATUS)
        return 0;
    (void)df_redis_fail_reply(n, reply, err);
    if (err && err->cls == DF_ERR_USER) /* "ERR AUTH called without any password configured" */
        err->cls = DF_ERR_DENIED;
    return df_err_wrap(err, "log in");
}

int df_redis_node_connect(struct df_redis_node *n, const struct df_redis_access *a,
                          struct df_err *err)
{
    struct timeval timeout = after(a->timeout_ms);
    redisOptions o = {.connect_timeout = &timeout, .command_timeout = &timeout};
    if (n->c)
        return 0;
    REDIS_OPTIONS_SET_TCP(&o, n->host, n->port);
    n->c = redisConnectWithOptions(&o);
    if (!n->c)
        return df_fail_oom(err);
    int result = n->c->err ? df_fail(err, DF_ERR_RETRY, "connect to Redis %s:%d: %s", n->host,
                                     n->port, n->c->errstr)
                 : a->tls  ? df_redis_tls_begin(a->tls, n->c, n->host, err)
                           : 0;
    if (result == 0) {
        n->c->reader->maxelements = DF_LIMIT_REDIS_ELEMENTS;
        result = a->password ? authenticate(n, a, err) : 0;
    }
    if (result < 0)
        df_redis_node_drop(n);
    return result;
}

static int append(struct df_redis_node *n, const struct df_redis_arg *command, size_t args,
                  struct df_err *err)
{
    DF_FREE const char **texts = calloc(args, sizeof(*texts));
    DF_FREE size_t *lengths = calloc(args, sizeof(*lengths));
    if (!texts || !lengths)
        return df_fail_oom(err);
    for (size_t i = 0; i < args; i++) {
        texts[i] = command[i].bytes;
        lengths[i] = command[i].n;
    }
    return redisAppendCommandArgv(n->c, (int)args, texts, lengths) == REDIS_OK ? 0
                                                                               : df_fail_oom(err);
}

static int fail_connection(const struct df_redis_node *n, const struct df_redis_access *a,
                           struct df_err *err)
{
    bool is_broken = n->c->err == REDIS_ERR_PROTOCOL || n->c->err == REDIS_ERR_OOM;
    /* A socket whose time is over says EAGAIN. */
    if (strstr(n->c->errstr, "temporarily unavailable"))
        return df_fail(err, DF_ERR_RETRY, "Redis %s:%d did not answer within %lld ms", n->host,
                       n->port, (long long)a->timeout_ms);
    return df_fail(err, is_broken ? DF_ERR_SYSTEM : DF_ERR_RETRY, "Redis %s:%d: %s", n->host,
                   n->port, n->c->errstr);
}

/* The next answer. hiredis reads as much as the server announces: the limit is kept here. */
static int read_reply(struct df_redis_node *n, const struct df_redis_access *a, redisReply **ret,
                      struct df_err *err)
{
    int64_t until = df_mono_ms() + a->timeout_ms;
    void *reply = NULL;
    for (;;) {
        if (redisGetReplyFromReader(n->c, &reply) != REDIS_OK)
            break;
        if (reply) {
            *ret = reply;
            return 0;
        }
        if (n->c->reader->len - n->c->reader->pos > DF_LIMIT_REDIS_ANSWER)
            return df_fail(err, DF_ERR_LIMIT, "Redis %s:%d: an answer of more than %zu bytes",
                           n->host, n->port, DF_LIMIT_REDIS_ANSWER);
        if (df_mono_ms() > until)
            return df_fail(err, DF_ERR_RETRY, "Redis %s:%d did not answer within %lld ms", n->host,
                           n->port, (long long)a->timeout_ms);
        if (redisBufferRead(n->c) != REDIS_OK)
            break;
    }
    (void)fail_connection(n, a, err);
    return -1;
}

static int exchange(struct df_redis_node *n, const struct df_redis_access *a,
                    struct df_redis_batch *b, struct df_err *err)
{
    int written = 0;
    for (size_t i = b->done; i < b->n; i++)
        if (append(n, b->commands[i], b->args[i], err) < 0)
            return -1;
    while (!written)
        if (redisBufferWrite(n->c, &written) != REDIS_OK)
            return fail_connection(n, a, err);
    for (; b->done < b->n; b->done++)
        if (read_reply(n, a, &b->replies[b->done], err) < 0)
            return -1;
    return 0;
}

int df_redis_node_exchange(struct df_redis_node *n, const struct df_redis_access *a,
                           struct df_redis_batch *b, struct df_err *err)
{
    int result = exchange(n, a, b, err);
    if (result < 0)
        df_redis_node_drop(n);
    return result;
}

int df_redis_node_ask(struct df_redis_node *n, const struct df_redis_access *a,
                      const struct df_redis_arg *command, size_t args, redisReply **ret,
                      struct df_err *err)
{
    struct df_redis_batch b = {.commands = &command, .args = &args, .n = 1, .replies = ret};
    return df_redis_node_exchange(n, a, &b, err);
}
