/*
 * check.c - the check of a service that is the executor of a Terrakube (terrakube.listen): its
 * settings, and whether those whom it needs answer and take its secrets. It changes nothing there.
 */
#include <errno.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/http/http.h"
#include "common/terrakube/storage.h"
#include "common/terrakube/token.h"
#include "common/terrakube/wire.h"
#include "spawner/doctor/checks.h"
#include "spawner/terrakube/terrakube.h"

#define ANSWER_MS 10000
#define TOKEN_SECONDS 60

typedef int part_fn(struct df_doctor_context *p, const struct df_terrakube_settings *s,
                    struct df_err *err);

/* ---- the API ---- */

static int ignore(void *arg, const char *bytes, size_t n)
{
    (void)arg, (void)bytes, (void)n;
    return 0;
}

/* Errors begin with the setting that is to blame. */
static int get(const struct df_terrakube_settings *s, const char *path,
               struct df_http_response *res, struct df_err *err)
{
    DF_HTTP struct df_http *http = NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_FREE char *url = df_strf("%s%s", s->api_url, path);
    if (df_terrakube_token_make(s->internal_secret, NULL, df_real_us(), TOKEN_SECONDS, &token,
                                err) < 0)
        return df_err_wrap(err, "InternalSecret");
    const struct df_http_options o = {.ca_pem = s->ca_pem, .bearer = df_buf_str(&token)};
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.timeout_ms = ANSWER_MS;
    req.on_data = ignore; /* an index of releases has megabytes */
    if (df_http_new(&o, &http, err) < 0 || df_http_send(http, &req, res, err) < 0)
        return df_err_wrap(err, "AzBuilderApiUrl");
    return 0;
}

static int check_api(struct df_doctor_context *p, const struct df_terrakube_settings *s,
                     struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (get(s, "/api/v1/organization", &res, err) < 0)
        return -1;
    if (res.status == 401 || res.status == 403)
        return df_fail(
            err, DF_ERR_DENIED,
            "the API at %s refuses a token signed with InternalSecret (HTTP %d): it must "
            "be the API's own",
            s->api_url, res.status);
    if (res.status != 200)
        return df_fail(err, DF_ERR_SYSTEM, "AzBuilderApiUrl: %s answers with HTTP %d", s->api_url,
                       res.status);
    df_finding(p, DF_LEVEL_OK, "the API at %s takes a token signed with InternalSecret",
               s->api_url);
    return 0;
}

/* A step that finds its tool in the image needs none. */
static int check_index(struct df_doctor_context *p, const struct df_terrakube_settings *s,
                       struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    (void)err;
    if (get(s, "/tofu/index.json", &res, &why) < 0)
        df_finding(p, DF_LEVEL_WARN, "the index of OpenTofu's releases: %s", why.message);
    else if (res.status != 200)
        df_finding(p, DF_LEVEL_WARN,
                   "%s/tofu/index.json answers with HTTP %d: steps can only use a tool of their "
                   "image",
                   s->api_url, res.status);
    else
        df_finding(p, DF_LEVEL_OK, "the API has the index of OpenTofu's releases");
    return 0;
}

/* ---- Redis, storage ---- */

static int check_redis(struct df_doctor_context *p, const struct df_terrakube_settings *s,
                       struct df_err *err)
{
    /* EXISTS has a key, as a cluster wants it. */
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("EXISTS"), DF_REDIS_TEXT("dayfly-doctor")};
    struct df_redis *redis = NULL;
    if (!s->redis.host && !s->redis.sentinels.len && !s->redis.cluster_nodes.len) {
        df_finding(
            p, DF_LEVEL_WARN,
            "no Redis is set (LogViaApi): Terrakube from 2.33 fails a job of which it gets no "
            "heartbeat there");
        return 0;
    }
    if (df_terrakube_wire_new(s, &redis, err) < 0)
        return -1;
    int result = df_redis_command(redis, args, DF_ARRAY_SIZE(args), NULL, err);
    df_redis_free(redis);
    if (result < 0)
        return df_err_wrap(err, "TerrakubeRedisHostname");
    df_finding(p, DF_LEVEL_OK, "Redis answers");
    return 0;
}

static int look_at_storage(struct df_terrakube_storage *storage, const char *path,
                           struct df_err *err)
{
    static const char zeros[] = "00000000-0000-0000-0000-000000000000";
    const struct df_terrakube_payload nobody = {
        .organization = zeros, .workspace = zeros, .job = "0", .step = zeros};
    struct df_err why = {0};
    int result =
        df_terrakube_storage_get(storage, &nobody, DF_TERRAKUBE_OBJECT_OUTPUT, NULL, path, &why);
    return result == 0 || why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

static int check_storage(struct df_doctor_context *p, const struct df_terrakube_settings *s,
                         struct df_err *err)
{
    struct df_terrakube_storage *storage = NULL;
    char directory[] = "/tmp/dayfly-doctor-XXXXXX";
    if (!mkdtemp(directory))
        return df_fail_errno(err, errno, "create %s", directory);
    DF_FREE char *path = df_fs_join(directory, "object");
    int result =
        path ? df_terrakube_storage_new(s, ANSWER_MS, NULL, &storage, err) : df_fail_oom(err);
    if (result == 0)
        result = look_at_storage(storage, path, err);
    df_terrakube_storage_free(storage);
    if (df_fs_remove_tree(directory, NULL) < 0)
        df_finding(p, DF_LEVEL_WARN, "%s is left behind", directory);
    if (result < 0)
        return df_err_wrap(err, "TerraformStateType");
    df_finding(p, DF_LEVEL_OK, "the storage answers and takes its credentials");
    return 0;
}

/* ---- the check ---- */

static int read_settings(struct df_terrakube_settings *ret, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs env = {0};
    for (char *const *e = environ; *e; e++)
        (void)df_strs_add(&env, *e);
    return df_strs_check(&env, err) < 0 ? -1 : df_terrakube_settings_read(&env, ret, err);
}

/* All parts, whatever the others found. */
int df_check_terrakube(struct df_doctor_context *p, struct df_err *err)
{
    static part_fn *const parts[] = {check_api, check_redis, check_storage, check_index};
    DF_CLEANUP(df_terrakube_settings_free) struct df_terrakube_settings s = {0};
    if (read_settings(&s, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++) {
        struct df_err why = {0};
        if (parts[i](p, &s, &why) < 0)
            df_finding(p, DF_LEVEL_FAIL, "%s", why.message);
    }
    return 0;
}
