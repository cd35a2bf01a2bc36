/*
 * The source `kv2`: the secrets engine KV version 2 of HashiCorp Vault and of OpenBao, by their
 * HTTP API: GET /v1/<mount>/data/<path>, LIST /v1/<mount>/metadata/<path>. Of a secret the newest
 * version is read, each time anew.
 */
#include "common/base/limits.h"
#include "spawner/store/vault/kv2_token.h"
#include "spawner/store/vault/source_backends.h"
#include "spawner/store/vault/sources.h"

struct kv2_vault {
    struct df_vault vault;
    struct df_http_options options; /* the pool borrows it */
    struct df_http_pool *pool;
    struct df_kv2_server server;
    struct df_kv2_token *token;
    const cJSON *source; /* its part of the configuration */
};

static const struct kv2_vault *kv2_of(const struct df_vault *v)
{
    return (const struct kv2_vault *)v; /* its first member */
}

/* Makes "secret/data/infra/db"; the caller frees. NULL if out of memory. name: or "". */
static char *path_of(const struct kv2_vault *v, const char *what, const char *name)
{
    const char *path = df_json_str(v->source, "path");
    return df_strf("%s/%s/%s%s%s", df_json_str(v->source, "mount"), what, path ? path : "",
                   path ? "/" : "", name);
}

/* ---- requests ---- */

/* One try of a request, with the token that it owns. */
struct attempt {
    struct df_kv2_request request;
    char *token;
};

static void wipe_attempt(struct attempt *a)
{
    df_str_wipe(&a->token);
}
#define ATTEMPT DF_CLEANUP(wipe_attempt) struct attempt

static int try_once(const struct kv2_vault *v, const char *refused, struct attempt *a,
                    int *ret_status, cJSON **ret, struct df_err *err)
{
    if (df_kv2_token_get(v->token, refused, &a->token, err) < 0)
        return -1;
    a->request.token = a->token;
    return df_kv2_send(&v->server, &a->request, ret_status, ret, err);
}

/* Every token may look at itself. */
#define OWN_TOKEN "auth/token/lookup-self"

/* Is it the token that the server refuses, or what was asked with it? A new login for each of the
 * latter would fill the server with tokens. */
static bool is_valid(const struct kv2_vault *v, const char *token)
{
    const struct df_kv2_request request = {.method = "GET", .path = OWN_TOKEN, .token = token};
    DF_SECRET_JSON cJSON *answer = NULL;
    int status = 0;
    return df_kv2_send(&v->server, &request, &status, &answer, NULL) == 0 && status == 200;
}

/* A token may have been revoked, or replaced: then the request is tried once more with another. */
static int ask(const struct kv2_vault *v, const char *method, const char *path, int *ret_status,
               cJSON **ret, struct df_err *err)
{
    ATTEMPT first = {.request = {.method = method, .path = path}};
    ATTEMPT second = first;
    struct df_err why = {0};
    if (try_once(v, NULL, &first, ret_status, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_DENIED || !first.token || is_valid(v, first.token))
        return df_err_pass(err, &why);
    return try_once(v, first.token, &second, ret_status, ret, err);
}

/* An engine of another version answers as if the secret were missing or forbidden. Every token that
 * may use a mount may look at it. If the server does not tell, the answer of the request counts. */
static int check_engine(const struct kv2_vault *v, struct df_err *err)
{
    const char *mount = df_json_str(v->source, "mount");
    DF_FREE char *path = df_strf("sys/internal/ui/mounts/%s", mount);
    DF_SECRET_JSON cJSON *answer = NULL;
    int status = 0;
    if (!path)
        return df_fail_oom(err);
    if (ask(v, "GET", path, &status, &answer, NULL) < 0 || status != 200)
        return 0;
    const char *type = df_json_str(answer, "data.type");
    const char *version = df_json_str(answer, "data.options.version");
    if (!type || (df_streq(type, "kv") && df_streq(version, "2")))
        return 0;
    return df_source_fail(
        err, DF_ERR_DENIED,
        "the engine at \"%s\" of %s is %s%s, and dayfly reads KV version 2 only: let `mount` of "
        "the "
        "source name one of version 2, or upgrade this one (`vault kv enable-versioning %s`)",
        mount, v->server.url, df_streq(type, "kv") ? "KV version " : type,
        df_streq(type, "kv") ? (version ? version : "1") : "", mount);
}

/* As ask(); what is refused or missing because of the engine's version is told so. */
static int read_engine(const struct kv2_vault *v, const char *method, const char *path,
                       int *ret_status, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    int result = ask(v, method, path, ret_status, ret, &why);
    bool is_odd = result < 0 ? why.cls == DF_ERR_DENIED : *ret_status == 404;
    if (is_odd && check_engine(v, err) < 0)
        return -1;
    return result < 0 ? df_err_pass(err, &why) : 0;
}

/* ---- reading ---- */

static int add_values(cJSON *values, const char *name, const cJSON *data, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, data) {
        const char *text = cJSON_GetStringValue(item);
        struct df_err why = {0};
        if (!text)
            return df_source_unreadable(name, item->string,
                                        "its value is not a string: put it into quotes", err);
        if (df_vault_check_key(item->string, &why) < 0 ||
            df_vault_check_value(text, strlen(text), &why) < 0)
            return df_source_unreadable(name, item->string, why.message, err);
        if (df_source_add_value(values, name, item->string, text, err) < 0)
            return -1;
    }
    return 0;
}

static int get_kv2(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    const struct kv2_vault *v = kv2_of(vault);
    DF_FREE char *path = path_of(v, "data", name);
    DF_SECRET_JSON cJSON *answer = NULL;
    DF_SECRET_JSON cJSON *values = cJSON_CreateObject();
    int status = 0;
    if (df_check_alloc(path, err) < 0 || df_check_alloc(values, err) < 0 ||
        read_engine(v, "GET", path, &status, &answer, err) < 0)
        return -1;
    const cJSON *data = df_json_at(answer, "data.data");
    if (status == 404)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s/v1/%s: there is none%s", v->server.url, path,
                       df_json_at(answer, "data.metadata") ? ", its newest version is deleted"
                                                           : "");
    if (!cJSON_IsObject(data) || !df_json_at(answer, "data.metadata"))
        return check_engine(v, err) < 0
                   ? -1
                   : df_source_fail(err, DF_ERR_DENIED,
                                    "%s/v1/%s: the answer is not one of KV version 2",
                                    v->server.url, path);
    if (add_values(values, name, data, err) < 0)
        return -1;
    *ret = DF_TAKE(values);
    return 0;
}

/* Names that end with "/" are directories. */
static int list_kv2(struct df_vault *vault, bool of_runs, cJSON **ret, struct df_err *err)
{
    const struct kv2_vault *v = kv2_of(vault);
    DF_FREE char *path = path_of(v, "metadata", "");
    DF_JSON cJSON *answer = NULL;
    DF_JSON cJSON *list = cJSON_CreateArray();
    int status = 0;
    const cJSON *item;
    (void)of_runs;
    if (df_check_alloc(path, err) < 0 || df_check_alloc(list, err) < 0 ||
        read_engine(v, "LIST", path, &status, &answer, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, df_json_at(answer, "data.keys")) {
        const char *name = cJSON_GetStringValue(item);
        if (name && df_source_add_name(list, name, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

static int check_kv2(struct df_vault *vault, struct df_err *err)
{
    DF_SECRET_JSON cJSON *answer = NULL;
    int status = 0;
    if (ask(kv2_of(vault), "GET", OWN_TOKEN, &status, &answer, err) < 0)
        return -1;
    return check_engine(kv2_of(vault), err);
}

/* ---- opening ---- */

static void close_kv2(struct df_vault *vault)
{
    struct kv2_vault *v = (struct kv2_vault *)vault;
    df_kv2_token_free(v->token);
    df_http_pool_free(v->pool);
    free(v);
}

static const struct df_vault_ops kv2_ops = {
    .close = close_kv2, .get = get_kv2, .list = list_kv2, .check = check_kv2};

int df_source_kv2_open(const cJSON *source, char **ret_place, struct df_vault **ret,
                       struct df_err *err)
{
    struct kv2_vault *v = calloc(1, sizeof(*v));
    if (!v)
        return df_fail_oom(err);
    DF_VAULT struct df_vault *vault = &v->vault;
    vault->ops = &kv2_ops;
    v->source = source;
    v->options.ca_file = df_json_str(source, "caFile");
    if (df_http_pool_new(&v->options, &v->pool, err) < 0)
        return -1;
    v->server = (struct df_kv2_server){df_json_str(source, "url"), df_json_str(source, "namespace"),
                                       v->pool};
    if (df_kv2_token_new(&v->server, df_json_at(source, "auth"), &v->token, err) < 0)
        return -1;
    const char *path = df_json_str(source, "path");
    *ret_place = df_strf("%s%s%s of %s", df_json_str(source, "mount"), path ? "/" : "",
                         path ? path : "", v->server.url);
    if (!*ret_place)
        return df_fail_oom(err);
    *ret = DF_TAKE(vault);
    return 0;
}
