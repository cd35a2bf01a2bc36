/*
 * terrakube.h - scenarios of common/redis and common/terrakube: a part of torture.c, whose
 * directory and whose count of allocations they use.
 */
#ifndef DF_TORTURE_TERRAKUBE_H
#define DF_TORTURE_TERRAKUBE_H

#include "common/redis/redis.h"
#include "common/terrakube/api.h"
#include "common/terrakube/jdk.h"
#include "common/terrakube/log_queue.h"
#include "common/terrakube/settings.h"
#include "common/terrakube/storage.h"
#include "common/terrakube/token.h"

static const char terrakube_text[] =
    "{\"type\": \"terraformPlan\", \"organizationId\": \"527930fd-b7d4-417f-b046-a35f3b5b1b7c\", "
    "\"workspaceId\": \"ea627267-8bcf-4c6c-b9b1-9c1d5422deb3\", \"jobId\": 12, "
    "\"stepId\": \"46a547e6-8e25-4b0b-b680-4994649bd0c0\", \"folder\": \"/a,/b\", "
    "\"variables\": {\"a\": \"b\", \"c\": null}, \"commandList\": [{\"runtime\": \"BASH\"}]}";

static int terrakube_job(struct df_err *err)
{
    DF_TERRAKUBE_PAYLOAD p = {0};
    DF_BUF struct df_buf coded = DF_BUF_INIT(DF_MIB);
    struct df_terrakube_command *commands = NULL;
    size_t n = 0;
    if (df_base64_encode(terrakube_text, strlen(terrakube_text), false, &coded, err) < 0)
        return -1;
    if (df_terrakube_payload_decode(df_buf_str(&coded), &p, err) < 0)
        return -1;
    int result = df_terrakube_commands(p.commands, &commands, &n, err);
    free(commands);
    return result;
}

static const struct df_terrakube_payload terrakube_payload = {
    .organization = "o", .workspace = "w", .job = "1", .step = "s"};

static int terrakube_storage(struct df_err *err)
{
    const struct df_terrakube_settings settings = {.home = directory};
    DF_TERRAKUBE_STORAGE struct df_terrakube_storage *s = NULL;
    DF_FREE char *from = df_fs_join(directory, "from"), *place = NULL;
    DF_FREE char *to = df_fs_join(directory, "to");
    if (!from || !to)
        return df_fail_oom(err);
    if (df_fs_write(from, "plan", 4, 0600, err) < 0 ||
        df_terrakube_storage_new(&settings, 0, NULL, &s, err) < 0 ||
        df_terrakube_storage_put(s, &terrakube_payload, DF_TERRAKUBE_OBJECT_PLAN, NULL, from, err) <
            0)
        return -1;
    if (df_terrakube_storage_plan_place(s, &terrakube_payload, &place, err) < 0)
        return -1;
    return df_terrakube_storage_get_plan(s, &terrakube_payload, place, to, err);
}

/* Nobody listens there. */
static int terrakube_refused(struct df_err *err)
{
    static char url[] = "http://127.0.0.1:1",
                secret[] = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
    const struct df_terrakube_settings settings = {
        .api_url = url, .public_url = url, .internal_secret = secret};
    DF_TERRAKUBE_API struct df_terrakube_api *a = NULL;
    struct df_err why = {0};
    if (df_terrakube_api_new(&settings, &terrakube_payload, 0, NULL, &a, err) < 0)
        return -1;
    if (df_terrakube_api_patch_step(a, "running", &why) == 0 || !why.message[0])
        DF_BUG("somebody answered");
    return why.cls == DF_ERR_RETRY ? 0 : df_err_pass(err, &why);
}

/* Nobody is there, in each of the three ways to find a server. */
static int redis_refused(struct df_err *err)
{
    static char address[] = "127.0.0.1:1";
    const struct df_strs list = {.items = (char *[]){address, NULL}, .len = 1};
    const struct df_redis_options ways[] = {
        {.host = "127.0.0.1", .port = 1, .user = "u", .password = "p", .tls = true},
        {.sentinels = &list, .sentinel_primary = "p", .sentinel_password = "s"},
        {.cluster_nodes = &list},
    };
    const struct df_redis_arg get[] = {DF_REDIS_TEXT("GET"), DF_REDIS_TEXT("k")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ways); i++) {
        struct df_redis *r = NULL;
        struct df_err refused = {0};
        if (df_redis_new(&ways[i], &r, err) < 0)
            return -1;
        int result = df_redis_command(r, get, DF_ARRAY_SIZE(get), NULL, &refused);
        df_redis_free(r);
        if (result == 0)
            DF_BUG("port 1 answered");
        if (refused.cls != DF_ERR_RETRY)
            return df_err_pass(err, &refused);
    }
    return 0;
}

#define TERRAKUBE_SECRET "dGVzdC1vbmx5LWludGVybmFsLXNlY3JldC0wMTIzNDU2Nzg5YWI="

static int terrakube_settings(struct df_err *err)
{
    static const char *const env[] = {
        "AzBuilderApiUrl=http://api/",
        "TerrakubeApiUrl=http://api",
        "InternalSecret=" TERRAKUBE_SECRET,
        "TerrakubeRegistryDomain=r",
        "TerraformStateType=GcpTerraformStateImpl",
        "GcpTerraformStateBucketName=b",
        "GcpTerraformStateCredentials=e30=",
        "TerrakubeRedisClusterNodes=a:1,b:2",
        "TerrakubeRedisSSL=true",
        "TerrakubeRedisTruststorePath=tests/fixtures/terrakube/trust.jks"};
    DF_STRS struct df_strs v = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(env); i++)
        (void)df_strs_add(&v, env[i]);
    if (df_strs_check(&v, err) < 0)
        return -1;
    struct df_terrakube_settings s = {0};
    if (df_terrakube_settings_read(&v, &s, err) < 0)
        return -1;
    df_terrakube_settings_free(&s);
    return 0;
}

/* A line that finds no memory is counted, and that is said where there is memory again. */
static int terrakube_wire(struct df_err *err)
{
    DF_BUF struct df_buf made = DF_BUF_INIT(DF_LIMIT_TOKEN), text = DF_BUF_INIT(DF_KIB);
    if (df_terrakube_token_make(TERRAKUBE_SECRET, "w", 0, 60, &made, err) < 0 ||
        df_jdk_add(&text, "text", 4, err) < 0)
        return -1;
    struct df_log_queue q;
    df_log_queue_init(&q);
    df_log_queue_bytes(&q, "one\ntwo\n", 8);
    until_failure = -1;
    df_log_queue_line(&q, "three", 5);
    const struct df_log_entry *entries[4];
    size_t n = df_log_queue_peek(&q, entries, DF_ARRAY_SIZE(entries));
    bool good = !q.missing && n >= 2 && strcmp(entries[n - 1]->text, "three") == 0;
    df_log_queue_free(&q);
    if (!good)
        DF_BUG("%zu lines", n);
    return 0;
}

#endif
