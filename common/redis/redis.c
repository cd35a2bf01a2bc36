/*
 * redis.c - where a command goes: to the one server, to the primary that a sentinel names, or to
 * the server of a cluster that has its key; and what becomes of the answers.
 */
#include "common/redis/cluster.h"
#include "common/redis/sentinel.h"

#include <strings.h>

#include "common/base/limits.h"

#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_REDIRECTS 5

struct df_redis {
    struct df_redis_access data, sentinel_access; /* their strings are below */
    char *user, *password, *sentinel_user, *sentinel_password;
    struct df_redis_tls *tls;         /* NULL: without */
    struct df_strs hosts;             /* as configured: names of certificates */
    struct df_redis_node server;      /* the one, or the primary */
    struct df_redis_cluster *cluster; /* NULL: no Cluster */
    char *primary;                    /* NULL: no Sentinel */
    struct df_redis_node *sentinels;  /* sentinel_count */
    size_t sentinel_count;
    int max_redirects;
};

/* ---- making one ---- */

void df_redis_free(struct df_redis *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->sentinel_count; i++)
        df_redis_node_free(&r->sentinels[i]);
    free(r->sentinels);
    df_redis_node_free(&r->server);
    df_redis_cluster_free(r->cluster);
    df_redis_tls_free(r->tls);
    df_strs_free(&r->hosts);
    df_str_wipe(&r->user);
    df_str_wipe(&r->password);
    df_str_wipe(&r->sentinel_user);
    df_str_wipe(&r->sentinel_password);
    free(r->primary);
    free(r);
}

static void cleanup_redis(struct df_redis **r)
{
    df_redis_free(*r);
}

static int add_sentinels(struct df_redis *r, const struct df_strs *addresses, struct df_err *err)
{
    r->sentinels = calloc(addresses->len, sizeof(*r->sentinels));
    if (!r->sentinels)
        return df_fail_oom(err);
    for (size_t i = 0; i < addresses->len; i++) {
        struct df_redis_node *n = &r->sentinels[r->sentinel_count];
        if (df_redis_node_init(n, addresses->items[i], err) < 0)
            return -1;
        r->sentinel_count++;
        (void)df_strs_add(&r->hosts, n->host);
    }
    return 0;
}

static int add_cluster(struct df_redis *r, const struct df_strs *addresses, struct df_err *err)
{
    r->cluster = df_redis_cluster_new();
    if (!r->cluster)
        return df_fail_oom(err);
    for (size_t i = 0; i < addresses->len; i++) {
        if (df_redis_cluster_add(r->cluster, addresses->items[i], err) < 0)
            return -1;
        (void)df_strs_add(&r->hosts, r->cluster->nodes[i].host);
    }
    return 0;
}

static int add_servers(struct df_redis *r, const struct df_redis_options *o, struct df_err *err)
{
    if (o->sentinels && o->sentinels->len)
        return df_str_set(&r->primary, o->sentinel_primary, err) < 0
                   ? -1
                   : add_sentinels(r, o->sentinels, err);
    if (o->cluster_nodes && o->cluster_nodes->len)
        return add_cluster(r, o->cluster_nodes, err);
    (void)df_strs_add(&r->hosts, o->host);
    return df_redis_node_set(&r->server, o->host, o->port, err);
}

static int copy_access(struct df_redis *r, const struct df_redis_options *o, struct df_err *err)
{
    int64_t timeout_ms = o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (df_str_set(&r->user, o->user, err) < 0 || df_str_set(&r->password, o->password, err) < 0 ||
        df_str_set(&r->sentinel_user, o->sentinel_user, err) < 0 ||
        df_str_set(&r->sentinel_password, o->sentinel_password, err) < 0)
        return -1;
    r->data = (struct df_redis_access){r->user, r->password, r->tls, timeout_ms};
    r->sentinel_access =
        (struct df_redis_access){r->sentinel_user, r->sentinel_password, r->tls, timeout_ms};
    return 0;
}

int df_redis_new(const struct df_redis_options *o, struct df_redis **ret, struct df_err *err)
{
    DF_CLEANUP(cleanup_redis) struct df_redis *r = calloc(1, sizeof(*r));
    if (!r)
        return df_fail_oom(err);
    r->max_redirects = o->max_redirects ? o->max_redirects : DEFAULT_REDIRECTS;
    if (add_servers(r, o, err) < 0 || df_strs_check(&r->hosts, err) < 0 ||
        (o->tls && df_redis_tls_new(o->ca_pem, &r->hosts, &r->tls, err) < 0) ||
        copy_access(r, o, err) < 0)
        return -1;
    *ret = DF_TAKE(r);
    return 0;
}

/* ---- answers ---- */

void df_redis_answer_free(struct df_redis_answer *a)
{
    for (int64_t i = 0; a->items && i < a->integer; i++)
        df_redis_answer_free(&a->items[i]);
    free(DF_TAKE(a->items));
    df_buf_free(&a->bytes);
}

static int take_answer(const redisReply *reply, struct df_redis_answer *ret, struct df_err *err);

/* As deep as hiredis reads: nine lists in each other. */
static int take_items(const redisReply *reply, struct df_redis_answer *ret, struct df_err *err)
{
    DF_REDIS_ANSWER list = {.kind = DF_REDIS_LIST};
    list.items = calloc(reply->elements ? reply->elements : 1, sizeof(*list.items));
    if (!list.items)
        return df_fail_oom(err);
    for (size_t i = 0; i < reply->elements; i++, list.integer++)
        if (take_answer(reply->element[i], &list.items[i], err) < 0)
            return -1;
    *ret = list;
    list.items = NULL;
    return 0;
}

static int take_answer(const redisReply *reply, struct df_redis_answer *ret, struct df_err *err)
{
    struct df_redis_answer a = {.bytes = DF_BUF_INIT(DF_LIMIT_REDIS_ANSWER)};
    switch (reply->type) {
    case REDIS_REPLY_NIL:
        a.kind = DF_REDIS_NIL;
        break;
    case REDIS_REPLY_INTEGER:
        a.kind = DF_REDIS_INTEGER;
        a.integer = reply->integer;
        break;
    case REDIS_REPLY_ARRAY:
        return take_items(reply, ret, err);
    default:
        a.kind = DF_REDIS_BYTES;
        (void)df_buf_add(&a.bytes, reply->str, reply->len);
        break;
    }
    if (df_buf_check(&a.bytes, err) < 0) {
        df_redis_answer_free(&a);
        return -1;
    }
    *ret = a;
    return 0;
}

/* ---- commands ---- */

static void free_replies(struct df_redis_batch *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        freeReplyObject(DF_TAKE(b->replies[i]));
}

static bool is_redirect(const redisReply *reply)
{
    return df_redis_says(reply, "MOVED") || df_redis_says(reply, "ASK");
}

/* Answers from the first redirect on do not count: the other server is asked for them.
 * *ret_redirect: that one, owned by the caller; or NULL. */
static int send_rest(struct df_redis_batch *b, struct df_redis_node *n,
                     const struct df_redis_access *a, redisReply **ret_redirect, struct df_err *err)
{
    size_t good = b->done;
    int result = df_redis_node_exchange(n, a, b, err);
    while (good < b->done && !is_redirect(b->replies[good]))
        good++;
    if (good == b->done)
        return result;
    *ret_redirect = DF_TAKE(b->replies[good]);
    free_replies(b, good + 1, b->done);
    b->done = good;
    return 0;
}

static int say_asking(struct df_redis_node *n, const struct df_redis_access *a, struct df_err *err)
{
    const struct df_redis_arg command = DF_REDIS_TEXT("ASKING");
    DF_REDIS_REPLY *reply = NULL;
    return df_redis_node_ask(n, a, &command, 1, &reply, err);
}

static unsigned slot_of(const struct df_redis_arg *command, size_t args)
{
    bool is_group = command[0].n == 6 && strncasecmp(command[0].bytes, "XGROUP", 6) == 0;
    size_t key = is_group ? 2 : 1;
    return key < args ? df_redis_slot(command[key].bytes, command[key].n) : 0;
}

/* After ASK only the next command is taken by the server that imports the slot. */
static int send_asked(struct df_redis_batch *b, struct df_redis_node *n,
                      const struct df_redis_access *a, redisReply **ret_redirect,
                      struct df_err *err)
{
    struct df_redis_batch one = {b->commands + b->done, b->args + b->done, 1, 0,
                                 b->replies + b->done};
    if (say_asking(n, a, err) < 0 || send_rest(&one, n, a, ret_redirect, err) < 0)
        return -1;
    b->done += one.done;
    return 0;
}

static int send_to_cluster(struct df_redis *r, struct df_redis_batch *b,
                           struct df_redis_node **ret_at, struct df_err *err)
{
    unsigned slot = slot_of(b->commands[0], b->args[0]);
    struct df_redis_node *n = NULL;
    bool is_asked = false;
    int redirects = 0;
    while (b->done < b->n) {
        DF_REDIS_REPLY *redirect = NULL;
        if ((n ? df_redis_node_connect(n, &r->data, err)
               : df_redis_cluster_pick(r->cluster, slot, &r->data, &n, err)) < 0)
            return -1;
        *ret_at = n;
        if ((is_asked ? send_asked : send_rest)(b, n, &r->data, &redirect, err) < 0)
            return -1;
        const struct df_redis_node *from = n;
        n = NULL;
        is_asked = false;
        if (!redirect)
            continue;
        if (redirects++ == r->max_redirects)
            return df_redis_fail_reply(from, redirect, err);
        if (df_redis_cluster_follow(r->cluster, from, redirect, &n, &is_asked, err) < 0)
            return -1;
    }
    return 0;
}

static int connect_server(struct df_redis *r, struct df_err *err)
{
    if (r->server.c)
        return 0;
    return r->primary ? df_redis_find_primary(r->primary, r->sentinels, r->sentinel_count,
                                              &r->sentinel_access, &r->data, &r->server, err)
                      : df_redis_node_connect(&r->server, &r->data, err);
}

/* *ret_at, also on failure: who was asked last. */
static int send_batch(struct df_redis *r, struct df_redis_batch *b, struct df_redis_node **ret_at,
                      struct df_err *err)
{
    *ret_at = &r->server;
    if (r->cluster)
        return send_to_cluster(r, b, ret_at, err);
    return connect_server(r, err) < 0 ? -1 : df_redis_node_exchange(&r->server, &r->data, b, err);
}

/* The first refusal of the batch. A primary that became a replica says READONLY: the next command
 * asks the sentinels anew. */
static int check_replies(struct df_redis_batch *b, struct df_redis_node *at, struct df_err *err)
{
    for (size_t i = 0; i < b->done; i++) {
        if (b->replies[i]->type != REDIS_REPLY_ERROR)
            continue;
        int result = df_redis_fail_reply(at, b->replies[i], err);
        if (df_redis_says(b->replies[i], "READONLY"))
            df_redis_node_drop(at);
        free_replies(b, i, b->done);
        b->done = i;
        return result;
    }
    return 0;
}

static int run_batch(struct df_redis *r, struct df_redis_batch *b, struct df_err *err)
{
    struct df_err why = {0};
    struct df_redis_node *at = NULL;
    int result = send_batch(r, b, &at, &why);
    if (check_replies(b, at, err) < 0)
        return -1;
    return result < 0 ? df_err_pass(err, &why) : 0;
}

int df_redis_command(struct df_redis *r, const struct df_redis_arg *args, size_t n,
                     struct df_redis_answer *ret, struct df_err *err)
{
    DF_REDIS_REPLY *reply = NULL;
    struct df_redis_batch b = {.commands = &args, .args = &n, .n = 1, .replies = &reply};
    if (run_batch(r, &b, err) < 0)
        return -1;
    return ret ? take_answer(reply, ret, err) : 0;
}

int df_redis_pipeline(struct df_redis *r, const struct df_redis_arg *const *commands,
                      const size_t *args, size_t n, size_t *ret_done, struct df_err *err)
{
    DF_FREE redisReply **replies = calloc(n ? n : 1, sizeof(redisReply *));
    struct df_redis_batch b = {.commands = commands, .args = args, .n = n, .replies = replies};
    *ret_done = 0;
    if (!replies)
        return df_fail_oom(err);
    int result = n ? run_batch(r, &b, err) : 0;
    *ret_done = b.done;
    free_replies(&b, 0, b.done);
    return result;
}
