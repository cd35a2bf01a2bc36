/*
 * kv2_token.c - a token is read from a file, each time anew, or comes from a login with the service
 * account's token. Read df_kv2_token_get() at the end, then ensure_login(): one login at a time,
 * and those who waited for it share its failure.
 */
#include "spawner/store/vault/kv2_token.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/token_cache.h"
#include "common/kube/config.h"
#include "spawner/store/vault/sources.h"

struct df_kv2_token {
    struct df_kv2_server server;
    const cJSON *auth;
    struct df_token_cache cache; /* of logins */
};

/* ---- files ---- */

/* Both kinds of files are replaced by others now and then, and are read each time. */
static int read_file(const char *path, char **ret, struct df_err *err)
{
    char *token = NULL;
    struct df_err why = {0};
    if (df_kube_read_secret(path, DF_LIMIT_TOKEN, &token, &why) < 0) {
        (void)df_source_failed(err, &why);
        return -1;
    }
    if (*token && strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789._~+/=-") == strlen(token)) {
        *ret = token;
        return 0;
    }
    df_str_wipe(&token);
    (void)df_source_fail(err, DF_ERR_DENIED, "%s is not a file with a token", path);
    return -1;
}

/* ---- login ---- */

/* {"role", "jwt"} as text; the caller wipes and frees. */
static int print_login(const cJSON *kubernetes, char **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *body = cJSON_CreateObject();
    char *jwt = NULL;
    if (df_check_alloc(body, err) < 0 ||
        read_file(df_json_str(kubernetes, "tokenFile"), &jwt, err) < 0)
        return -1;
    int result = df_json_add_str(body, "role", df_json_str(kubernetes, "role"), err) < 0
                     ? -1
                     : df_json_add_str(body, "jwt", jwt, err);
    df_str_wipe(&jwt);
    if (result < 0)
        return -1;
    return df_check_alloc(*ret = df_json_print(body), err);
}

/* The token is replaced after two thirds of its life, and not used any more. */
static int take_login(const struct df_kv2_token *t, const cJSON *answer, const char *path,
                      struct df_token *ret, struct df_err *err)
{
    const char *token = df_json_str(answer, "auth.client_token");
    int64_t life_s = df_json_int(answer, "auth.lease_duration", 0);
    if (df_str_empty(token))
        return df_source_fail(err, DF_ERR_DENIED, "POST %s/v1/%s: the answer has no token",
                              t->server.url, path);
    ret->renew_us =
        life_s > 0 && life_s < INT32_MAX ? df_real_us() + life_s * 1000000 * 2 / 3 : INT64_MAX;
    ret->until_us = ret->renew_us;
    return df_str_set(&ret->text, token, err);
}

static int log_in(void *arg, struct df_token *ret, struct df_err *err)
{
    const struct df_kv2_token *t = arg;
    const cJSON *kubernetes = df_json_at(t->auth, "kubernetes");
    DF_FREE char *path = df_strf("auth/%s/login", df_json_str(kubernetes, "mount"));
    DF_SECRET_JSON cJSON *answer = NULL;
    char *body = NULL;
    int status = 0;
    if (df_check_alloc(path, err) < 0 || print_login(kubernetes, &body, err) < 0)
        return -1;
    const struct df_kv2_request request = {.method = "POST", .path = path, .body = body};
    int result = df_kv2_send(&t->server, &request, &status, &answer, err);
    df_str_wipe(&body);
    if (result < 0)
        return -1;
    if (status == 404)
        return df_source_fail(err, DF_ERR_DENIED, "POST %s/v1/%s: status 404", t->server.url, path);
    return take_login(t, answer, path, ret, err);
}

/* ---- the token ---- */

int df_kv2_token_new(const struct df_kv2_server *server, const cJSON *auth,
                     struct df_kv2_token **ret, struct df_err *err)
{
    struct df_kv2_token *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    t->server = *server;
    t->auth = auth;
    df_token_cache_init(&t->cache, log_in, t);
    *ret = t;
    return 0;
}

void df_kv2_token_free(struct df_kv2_token *t)
{
    if (!t)
        return;
    df_token_cache_free(&t->cache);
    free(t);
}

int df_kv2_token_get(struct df_kv2_token *t, const char *refused, char **ret, struct df_err *err)
{
    const char *file = df_json_str(t->auth, "tokenFile");
    DF_TOKEN token = {0};
    if (file)
        return read_file(file, ret, err);
    if (df_token_cache_get(&t->cache, refused, &token, err) < 0)
        return -1;
    *ret = DF_TAKE(token.text);
    return 0;
}
