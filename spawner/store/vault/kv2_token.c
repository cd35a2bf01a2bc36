#include "spawner/store/vault/kv2_token.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/kube/config.h"
#include "spawner/store/vault/sources.h"

struct df_kv2_token {
    struct df_kv2_server server;
    const cJSON *auth;
    pthread_mutex_t lock; /* also held during a login: one request, not one a thread */
    char *token;          /* of the last login; or NULL */
    int64_t until_ms;     /* monotonic: it is renewed by another login; INT64_MAX: never */
    int64_t failed_ms;    /* when the last login failed */
    struct df_err failure;
};

int df_kv2_token_new(const struct df_kv2_server *server, const cJSON *auth,
                     struct df_kv2_token **ret, struct df_err *err)
{
    struct df_kv2_token *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    t->server = *server;
    t->auth = auth;
    t->failed_ms = -1;
    (void)pthread_mutex_init(&t->lock, NULL);
    *ret = t;
    return 0;
}

void df_kv2_token_free(struct df_kv2_token *t)
{
    if (!t)
        return;
    df_str_wipe(&t->token);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- files ------------------------------------------------------------------------------------ */

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

/* ---- login ------------------------------------------------------------------------------------ */

/* {"role", "jwt"} as text; the caller wipes and frees. */
static int print_login(const cJSON *kubernetes, char **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *body = cJSON_CreateObject();
    char *jwt = NULL;
    if (!body)
        return df_fail_oom(err);
    if (read_file(df_json_str(kubernetes, "tokenFile"), &jwt, err) < 0)
        return -1;
    int result = df_json_add_str(body, "role", df_json_str(kubernetes, "role"), err) < 0
                     ? -1
                     : df_json_add_str(body, "jwt", jwt, err);
    df_str_wipe(&jwt);
    if (result < 0)
        return -1;
    *ret = df_json_print(body);
    return *ret ? 0 : df_fail_oom(err);
}

/* The token is replaced after two thirds of its life. */
static int take_login(struct df_kv2_token *t, const cJSON *answer, const char *path,
                      struct df_err *err)
{
    const char *token = df_json_str(answer, "auth.client_token");
    int64_t life_s = df_json_int(answer, "auth.lease_duration", 0);
    if (df_str_empty(token))
        return df_source_fail(err, DF_ERR_DENIED, "POST %s/v1/%s: the answer has no token",
                              t->server.url, path);
    df_str_wipe(&t->token);
    t->until_ms =
        life_s > 0 && life_s < INT32_MAX ? df_mono_ms() + life_s * 1000 * 2 / 3 : INT64_MAX;
    t->token = strdup(token);
    return t->token ? 0 : df_fail_oom(err);
}

static int log_in(struct df_kv2_token *t, struct df_err *err)
{
    const cJSON *kubernetes = df_json_at(t->auth, "kubernetes");
    DF_FREE char *path = df_strf("auth/%s/login", df_json_str(kubernetes, "mount"));
    DF_SECRET_JSON cJSON *answer = NULL;
    char *body = NULL;
    int status = 0;
    if (!path)
        return df_fail_oom(err);
    if (print_login(kubernetes, &body, err) < 0)
        return -1;
    const struct df_kv2_request request = {.method = "POST", .path = path, .body = body};
    int result = df_kv2_send(&t->server, &request, &status, &answer, err);
    df_str_wipe(&body);
    if (result < 0)
        return -1;
    if (status == 404)
        return df_source_fail(err, DF_ERR_DENIED, "POST %s/v1/%s: status 404", t->server.url, path);
    return take_login(t, answer, path, err);
}

/* asked_ms: a login that failed since then has failed for this caller, too. Otherwise each of many
 * would wait for a server that is away, one after the other. */
static int ensure_login(struct df_kv2_token *t, const char *refused, int64_t asked_ms,
                        struct df_err *err)
{
    if (t->token && df_mono_ms() < t->until_ms && !df_streq(t->token, refused))
        return 0;
    if (t->failed_ms >= asked_ms)
        return df_err_pass(err, &t->failure);
    struct df_err why = {0};
    if (log_in(t, &why) == 0)
        return 0;
    df_str_wipe(&t->token);
    t->failed_ms = df_mono_ms();
    t->failure = why;
    return df_err_pass(err, &why);
}

int df_kv2_token_get(struct df_kv2_token *t, const char *refused, char **ret, struct df_err *err)
{
    const char *file = df_json_str(t->auth, "tokenFile");
    int64_t asked_ms = df_mono_ms();
    char *copy = NULL;
    if (file)
        return read_file(file, ret, err);
    (void)pthread_mutex_lock(&t->lock);
    int result = ensure_login(t, refused, asked_ms, err);
    if (result == 0)
        copy = strdup(t->token);
    (void)pthread_mutex_unlock(&t->lock);
    if (result < 0)
        return -1;
    *ret = copy;
    return copy ? 0 : df_fail_oom(err);
}
