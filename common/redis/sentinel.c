#include "common/redis/sentinel.h"

#include "common/base/parse.h"

/* What a sentinel says: address and port of the primary. */
static int ask_for_primary(struct df_redis_node *sentinel, const struct df_redis_access *a,
                           const char *name, struct df_redis_node *primary, struct df_err *err)
{
    const struct df_redis_arg command[] = {
        DF_REDIS_TEXT("SENTINEL"), DF_REDIS_TEXT("GET-MASTER-ADDR-BY-NAME"), DF_REDIS_TEXT(name)};
    DF_REDIS_REPLY *reply = NULL;
    int64_t port = 0;
    if (df_redis_node_connect(sentinel, a, err) < 0 ||
        df_redis_node_ask(sentinel, a, command, DF_ARRAY_SIZE(command), &reply, err) < 0)
        return -1;
    if (reply->type == REDIS_REPLY_NIL)
        return df_fail(err, DF_ERR_RETRY, "the sentinel %s:%d knows no primary of the name %s",
                       sentinel->host, sentinel->port, name);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str ||
        !reply->element[1]->str || df_parse_i64(reply->element[1]->str, 1, 65535, &port, NULL) < 0)
        return df_redis_fail_reply(sentinel, reply, err);
    return df_redis_node_set(primary, reply->element[0]->str, (int)port, err);
}

/* A sentinel that was cut off names the old primary for a while. */
static int check_role(struct df_redis_node *n, const struct df_redis_access *a, struct df_err *err)
{
    const struct df_redis_arg command = DF_REDIS_TEXT("ROLE");
    DF_REDIS_REPLY *reply = NULL;
    if (df_redis_node_ask(n, a, &command, 1, &reply, err) < 0)
        return -1;
    if (reply->type == REDIS_REPLY_ERROR)
        return df_redis_fail_reply(n, reply, err);
    bool is_primary = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                      df_streq(reply->element[0]->str, "master");
    return is_primary
               ? 0
               : df_fail(err, DF_ERR_RETRY, "Redis %s:%d was named by a sentinel and is no primary",
                         n->host, n->port);
}

int df_redis_find_primary(const char *name, struct df_redis_node *sentinels, size_t count,
                          const struct df_redis_access *access, const struct df_redis_access *data,
                          struct df_redis_node *primary, struct df_err *err)
{
    int result = -1;
    for (size_t i = 0; result < 0 && i < count; i++) {
        result = ask_for_primary(&sentinels[i], access, name, primary, err);
        df_redis_node_drop(&sentinels[i]);
        if (result == 0)
            result = df_redis_node_connect(primary, data, err);
        if (result == 0)
            result = check_role(primary, data, err);
        if (result < 0)
            df_redis_node_drop(primary);
    }
    return result;
}
