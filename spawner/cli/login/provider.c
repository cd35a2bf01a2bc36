/*
 * provider.c - a provider's answers: first how it is found, then df_provider_ask() with the errors
 * of OAuth, then what a token must be before it is kept.
 */
#include "spawner/cli/login/provider.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/crypto/jwks.h"
#include "common/oauth/openid.h"

enum { SAID_MAX = 300 /* bytes of a provider's own words */, ANSWER_MS = 10000 };

const char *df_provider_issuer(const struct df_provider *p)
{
    return df_json_str(p->login, "issuer");
}

const char *df_provider_client(const struct df_provider *p)
{
    return df_json_str(p->login, "clientId");
}

int df_provider_open(struct df_provider *p, const cJSON *login, struct df_err *err)
{
    const struct df_http_options http = {.ca_file = df_json_str(login, "caFile"),
                                         .connect_ms = ANSWER_MS};
    *p = (struct df_provider){.login = login};
    if (!df_provider_issuer(p) || !df_provider_client(p))
        return df_fail(err, DF_ERR_USER,
                       "no issuer or no client id of the OpenID provider is known");
    return df_openid_check_issuer("issuer", df_provider_issuer(p), err) < 0 ||
                   df_http_new(&http, &p->http, err) < 0
               ? -1
               : df_openid_discover(p->http, df_provider_issuer(p), &p->discovery, err);
}

void df_provider_free(struct df_provider *p)
{
    df_http_free(p->http);
    cJSON_Delete(p->discovery);
    *p = (struct df_provider){0};
}

/* ---- questions ---- */

static int make_form(const struct df_provider *p, const struct df_http_parameter *form,
                     struct df_buf *out, struct df_err *err)
{
    (void)df_buf_adds(out, "client_id=");
    df_url_add_escaped(out, df_provider_client(p));
    for (; form->name; form++) {
        (void)df_buf_addf(out, "&%s=", form->name);
        df_url_add_escaped(out, form->value);
    }
    return df_buf_check(out, err);
}

/* {"error", "error_description"} of RFC 6749, 5.2. */
static int fail_oauth(const struct df_provider *p, const struct df_http_response *r,
                      const cJSON *answer, struct df_err *err)
{
    const char *word = df_json_str(answer, "error");
    const char *said = df_json_str(answer, "error_description");
    DF_FREE char *what = df_strf("the OpenID provider %.200s", df_provider_issuer(p));
    if (df_check_alloc(what, err) < 0)
        return -1;
    if (!word || r->status >= 500 || r->status == 429)
        return df_http_check(r, what, err);
    return df_fail_reason(err, DF_ERR_DENIED, word, "%s refuses: %.*s%s%.*s", what, SAID_MAX, word,
                          said ? ": " : "", SAID_MAX, said ? said : "");
}

static int take_answer(const struct df_provider *p, const struct df_http_response *r, cJSON **ret,
                       struct df_err *err)
{
    DF_SECRET_JSON cJSON *answer = NULL;
    bool is_json = df_json_parse(df_buf_str(&r->body), r->body.len, &answer, NULL) == 0;
    if (r->status >= 400)
        return fail_oauth(p, r, answer, err);
    if (!ret)
        return 0;
    if (r->status != 200 || !is_json || !cJSON_IsObject(answer))
        return df_fail(err, DF_ERR_SYSTEM,
                       "the OpenID provider %.200s answers %d and no JSON object",
                       df_provider_issuer(p), r->status);
    *ret = DF_TAKE(answer);
    return 0;
}

int df_provider_ask(struct df_provider *p, const char *endpoint,
                    const struct df_http_parameter *form, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf body = DF_BUF_INIT(8 * DF_LIMIT_TOKEN);
    struct df_http_response answer = {0};
    const char *url = df_openid_url(p->discovery, endpoint);
    if (!url)
        return df_fail_reason(err, DF_ERR_USER, "NoEndpoint",
                              "the OpenID provider %.200s names no %s with https://",
                              df_provider_issuer(p), endpoint);
    if (make_form(p, form, &body, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST("POST", url);
    req.content_type = "application/x-www-form-urlencoded";
    req.body = df_buf_str(&body);
    req.body_len = body.len;
    req.timeout_ms = ANSWER_MS;
    req.max_response = DF_LIMIT_OAUTH_ANSWER;
    req.once = true; /* a code or a refresh token that is sent twice may end the sign-in */
    int result = df_http_send(p->http, &req, &answer, err);
    if (result == 0)
        result = take_answer(p, &answer, ret, err);
    df_buf_wipe(&answer.body);
    df_http_response_free(&answer);
    return result;
}

/* ---- tokens ---- */

static int fetch_keys(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    struct df_provider *p = arg;
    (void)path; /* always the keys: the issuer is known */
    return df_openid_keys(p->http, df_provider_issuer(p), ret, err);
}

static int fail_token(struct df_err *err)
{
    char now[DF_TIME_LEN];
    bool is_time =
        df_streq(err->reason, "TokenExpired") || df_streq(err->reason, "TokenNotYetValid");
    if (is_time)
        return df_err_wrap(err,
                           "the OpenID provider's token is of another time than the clock of "
                           "this machine, which says %s: set the clock",
                           df_time_format(df_real_us(), now));
    return df_err_wrap(err, "the OpenID provider's token");
}

static int verify(struct df_provider *p, const char *token, struct df_err *err)
{
    const struct df_jwks_options o = {
        .fetch = fetch_keys, .arg = p, .issuer = df_provider_issuer(p)};
    struct df_jwks *keys = NULL;
    DF_JSON cJSON *claims = NULL;
    if (df_jwks_new(&o, &keys, err) < 0)
        return -1;
    int result = df_jwks_verify(keys, token, df_provider_client(p), &claims, err);
    df_jwks_free(keys);
    return result < 0 ? fail_token(err) : 0;
}

int df_provider_take(struct df_provider *p, const cJSON *answer, cJSON *to, struct df_err *err)
{
    const char *id = df_json_str(answer, "id_token");
    const char *refresh = df_json_str(answer, "refresh_token");
    /* First: the one before is of no use any more, whatever the ID token is. */
    if (refresh && df_json_set_str(to, "refreshToken", refresh, err) < 0)
        return -1;
    if (!id)
        return df_fail_reason(err, DF_ERR_DENIED, "NoIdToken",
                              "the OpenID provider %.200s gives no ID token: ask it for the scope "
                              "openid (--scope, auth.oidc.scopes)",
                              df_provider_issuer(p));
    return verify(p, id, err) < 0 ? -1 : df_json_set_str(to, "idToken", id, err);
}
