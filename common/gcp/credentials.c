/*
 * The sources: a service account's key, federation, metadata; then the choice among them.
 */
#include "common/gcp/credentials.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/jwt.h"
#include "common/oauth/oauth.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"

#define WHAT "credentials of Google Cloud"

enum { LIFE_S = 3600 };

struct df_gcp_credentials {
    struct df_token_cache cache;
    cJSON *given; /* owned, a secret; or NULL */
};

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return df_str_empty(value) ? otherwise : value;
}

/* ---- files ---- */

static const char *member(const cJSON *file, const char *path, struct df_err *err)
{
    const char *value = df_json_str(file, path);
    if (!value)
        (void)df_fail(err, DF_ERR_USER, "%s is missing", path);
    return value;
}

/* ---- the key of a service account ---- */

static int make_assertion(const cJSON *file, const char *audience, struct df_buf *out,
                          struct df_err *err)
{
    const char *email = member(file, "client_email", err);
    const char *key = email ? member(file, "private_key", err) : NULL;
    DF_JSON cJSON *claims = cJSON_CreateObject();
    int64_t now_s = df_real_us() / 1000000;
    if (!key)
        return -1;
    if (df_json_put(claims, err, DF_STR("iss", email), DF_STR("scope", SCOPE),
                    DF_STR("aud", audience), DF_NUM("iat", now_s),
                    DF_NUM("exp", (now_s + LIFE_S))) < 0)
        return -1;
    return df_jwt_sign(claims, key, df_json_str(file, "private_key_id"), out, err);
}

static int get_by_key(const cJSON *file, struct df_token *t, struct df_err *err)
{
    const char *url = df_json_str(file, "token_uri");
    DF_CLEANUP(df_buf_wipe) struct df_buf body = DF_BUF_INIT(DF_LIMIT_OAUTH_ANSWER);
    DF_SECRET_JSON cJSON *answer = NULL;
    url = url ? url : "https://oauth2.googleapis.com/token";
    (void)df_buf_adds(
        &body, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    if (make_assertion(file, url, &body, err) < 0)
        return -1;
    const struct df_oauth_question q = {WHAT,      url,  NULL, "application/x-www-form-urlencoded",
                                        body.data, false};
    return df_oauth_ask(&q, &answer, err) < 0 ? -1 : df_oauth_take(answer, WHAT, t, err);
}

/* ---- workload identity federation ---- */

/* The token of the cluster, from its file: alone, or a member of a JSON document. */
static int read_subject(const cJSON *file, struct df_buf *out, struct df_err *err)
{
    const char *path = member(file, "credential_source.file", err);
    const char *field = df_json_str(file, "credential_source.format.subject_token_field_name");
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OAUTH_ANSWER);
    DF_SECRET_JSON cJSON *document = NULL;
    if (!path || df_fs_read(path, &text, err) < 0)
        return -1;
    if (!field) {
        (void)df_buf_add(out, df_buf_str(&text), strcspn(df_buf_str(&text), "\r\n"));
        return df_buf_check(out, err);
    }
    if (df_json_parse(df_buf_str(&text), text.len, &document, err) < 0)
        return df_err_wrap(err, "%s", path);
    const char *token = df_json_str(document, field);
    if (!token)
        return df_fail(err, DF_ERR_USER, "%s has no member %s", path, field);
    (void)df_buf_adds(out, token);
    return df_buf_check(out, err);
}

static int print_exchange(const cJSON *file, char **ret, struct df_err *err)
{
    const char *audience = member(file, "audience", err);
    const char *type = audience ? member(file, "subject_token_type", err) : NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf subject = DF_BUF_INIT(DF_LIMIT_OAUTH_ANSWER);
    DF_SECRET_JSON cJSON *body = cJSON_CreateObject();
    if (!type || read_subject(file, &subject, err) < 0)
        return -1;
    if (df_json_add_str(body, "grantType", "urn:ietf:params:oauth:grant-type:token-exchange", err) <
            0 ||
        df_json_put(body, err, DF_STR("audience", audience),
                    DF_STR("scope", "https://www.googleapis.com/auth/cloud-platform"),
                    DF_STR("requestedTokenType", "urn:ietf:params:oauth:token-type:access_token"),
                    DF_STR("subjectTokenType", type),
                    DF_STR("subjectToken", df_buf_str(&subject))) < 0)
        return -1;
    return df_check_alloc(*ret = df_json_print(body), err);
}

/* {"accessToken", "expireTime"} */
static int impersonate(const char *url, struct df_token *t, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf header = DF_BUF_INIT(DF_LIMIT_OAUTH_ANSWER);
    DF_SECRET_JSON cJSON *answer = NULL;
    (void)df_buf_addf(&header, "Authorization: Bearer %s", t->text);
    const struct df_oauth_question q = {
        WHAT, url, df_buf_str(&header), NULL, "{\"scope\":[\"" SCOPE "\"]}", false};
    if (df_buf_check(&header, err) < 0 || df_oauth_ask(&q, &answer, err) < 0)
        return -1;
    const char *text = df_json_str(answer, "accessToken");
    const char *until = df_json_str(answer, "expireTime");
    int64_t until_us = 0;
    if (!text || !until || df_time_parse(until, &until_us, NULL) < 0)
        return df_fail(err, DF_ERR_SYSTEM, "impersonation: no accessToken with expireTime");
    df_token_ends(t, until_us);
    return df_str_set(&t->text, text, err);
}

static int get_by_federation(const cJSON *file, struct df_token *t, struct df_err *err)
{
    const char *url = member(file, "token_url", err);
    const char *as = df_json_str(file, "service_account_impersonation_url");
    char *body = NULL;
    DF_SECRET_JSON cJSON *answer = NULL;
    if (!url || print_exchange(file, &body, err) < 0)
        return -1;
    const struct df_oauth_question q = {WHAT, url, NULL, NULL, body, false};
    int result = df_oauth_ask(&q, &answer, err);
    df_str_wipe(&body);
    if (result < 0 || df_oauth_take(answer, WHAT, t, err) < 0)
        return -1;
    return as ? impersonate(as, t, err) : 0;
}

/* ---- the chain ---- */

static int get_by_metadata(struct df_token *t, struct df_err *err)
{
    DF_SECRET_JSON cJSON *answer = NULL;
    DF_FREE char *url = df_strf(
        "http://%s/computeMetadata/v1/instance/service-accounts/default/token?scopes=" SCOPE,
        env_or("GCE_METADATA_HOST", "metadata.google.internal"));
    const struct df_oauth_question q = {WHAT, url, "Metadata-Flavor: Google", NULL, NULL, true};
    return df_oauth_ask(&q, &answer, err) < 0 ? -1 : df_oauth_take(answer, WHAT, t, err);
}

static int get_by_document(const cJSON *file, struct df_token *t, struct df_err *err)
{
    const char *type = df_json_str(file, "type");
    return df_streq(type, "service_account")    ? get_by_key(file, t, err)
           : df_streq(type, "external_account") ? get_by_federation(file, t, err)
                                                : df_fail(err, DF_ERR_USER,
                                                          "type: \"%.64s\" is neither "
                                                          "service_account nor "
                                                          "external_account",
                                                          type ? type : "");
}

static int get_by_file(const char *path, struct df_token *t, struct df_err *err)
{
    DF_SECRET_JSON cJSON *file = NULL;
    if (df_json_load(path, DF_LIMIT_OAUTH_ANSWER, &file, err) < 0)
        return df_err_wrap(err, "GOOGLE_APPLICATION_CREDENTIALS");
    return get_by_document(file, t, err) < 0
               ? df_err_wrap(err, "GOOGLE_APPLICATION_CREDENTIALS: %s", path)
               : 0;
}

static int fetch_token(void *arg, struct df_token *ret, struct df_err *err)
{
    const struct df_gcp_credentials *c = arg;
    if (c->given)
        return get_by_document(c->given, ret, err);
    const char *path = env_or("GOOGLE_APPLICATION_CREDENTIALS", NULL);
    return path ? get_by_file(path, ret, err) : get_by_metadata(ret, err);
}

int df_gcp_credentials_get(struct df_gcp_credentials *c, char **ret, struct df_err *err)
{
    DF_TOKEN token = {0};
    if (df_token_cache_get(&c->cache, NULL, &token, err) < 0)
        return -1;
    *ret = DF_TAKE(token.text);
    return 0;
}

void df_gcp_credentials_refused(struct df_gcp_credentials *c, const char *token)
{
    df_token_cache_forget(&c->cache, token);
}

int df_gcp_credentials_new(struct df_gcp_credentials **ret, struct df_err *err)
{
    struct df_gcp_credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    df_token_cache_init(&c->cache, fetch_token, c);
    *ret = c;
    return 0;
}

int df_gcp_credentials_given(const char *json, struct df_gcp_credentials **ret, struct df_err *err)
{
    struct df_gcp_credentials *c = NULL;
    if (df_gcp_credentials_new(&c, err) < 0)
        return -1;
    if (df_json_parse(json, strlen(json), &c->given, err) < 0) {
        df_gcp_credentials_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void df_gcp_credentials_free(struct df_gcp_credentials *c)
{
    if (!c)
        return;
    df_json_wipe(c->given);
    df_token_cache_free(&c->cache);
    free(c);
}
