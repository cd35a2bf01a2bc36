/*
 * http.c - the client with its credentials, and df_http_send(): one exchange (exchange.c) for each
 * redirect until there is a response or the deadline is over.
 */
#include "common/http/http.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/http/exchange.h"

enum { MAX_REDIRECTS = 5 };

static int copy_text(const char *s, char **ret)
{
    *ret = s ? strdup(s) : NULL;
    return s && !*ret ? -1 : 0;
}

void df_http_free(struct df_http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->easy);
    (void)curl_multi_cleanup(h->multi);
    df_str_wipe(&h->bearer);
    df_str_wipe(&h->password);
    free(h->user);
    df_str_wipe(&h->key_pem);
    df_str_wipe(&h->proxy); /* may contain a password */
    df_str_wipe(&h->aws_token);
    free(h->aws_scope);
    free(h->cert_pem);
    free(h->ca_file);
    free(h->ca_pem);
    free(h->server_name);
    free(h->user_agent);
    free(h);
}

int df_http_new(const struct df_http_options *o, struct df_http **ret, struct df_err *err)
{
    if (df_has_control(o->user) || df_has_control(o->password) || df_has_control(o->user_agent))
        return df_fail(err, DF_ERR_USER, "user name or password holds a control character");
    DF_HTTP struct df_http *h = calloc(1, sizeof(*h));
    if (!h)
        return df_fail_oom(err);
    h->follow_redirects = o->follow_redirects;
    h->allow_file = o->allow_file;
    h->insecure = o->insecure;
    h->piece = o->piece;
    h->connect_ms = o->connect_ms ? o->connect_ms : DF_TIMEOUT_CONNECT_MS;
    h->multi = curl_multi_init();
    h->easy = curl_easy_init();
    if (!h->multi || !h->easy || copy_text(o->ca_file, &h->ca_file) < 0 ||
        copy_text(o->ca_pem, &h->ca_pem) < 0 || copy_text(o->server_name, &h->server_name) < 0 ||
        copy_text(o->proxy, &h->proxy) < 0 || copy_text(o->user, &h->user) < 0 ||
        copy_text(o->password, &h->password) < 0 ||
        copy_text(o->user_agent ? o->user_agent : "dayfly/" DF_VERSION, &h->user_agent) < 0)
        return df_fail_oom(err);
    if (o->bearer && df_http_set_bearer(h, o->bearer, err) < 0)
        return -1;
    *ret = DF_TAKE(h);
    return 0;
}

int df_http_set_bearer(struct df_http *h, const char *token, struct df_err *err)
{
    if (df_has_control(token))
        return df_fail(err, DF_ERR_USER, "the bearer token holds a control character");
    char *fresh = strdup(token);
    if (!fresh)
        return df_fail_oom(err);
    df_str_wipe(&h->bearer);
    h->bearer = fresh;
    return 0;
}

int df_http_set_client_certificate(struct df_http *h, const char *cert_pem, const char *key_pem,
                                   struct df_err *err)
{
    char *cert = strdup(cert_pem), *key = strdup(key_pem);
    if (!cert || !key) {
        free(cert);
        df_str_wipe(&key);
        return df_fail_oom(err);
    }
    free(h->cert_pem);
    df_str_wipe(&h->key_pem);
    h->cert_pem = cert;
    h->key_pem = key;
    return 0;
}

int df_http_set_aws(struct df_http *h, const struct df_http_aws *keys, struct df_err *err)
{
    if (df_has_control(keys->access_key) || df_has_control(keys->secret_key))
        return df_fail(err, DF_ERR_USER, "an AWS key holds a control character");
    DF_FREE char *scope = df_strf("aws:amz:%s:%s", keys->region, keys->service);
    DF_FREE char *token = keys->token ? df_strf("X-Amz-Security-Token: %s", keys->token) : NULL;
    if (!scope || (keys->token && !token))
        return df_fail_oom(err);
    if (df_str_set(&h->user, keys->access_key, err) < 0)
        return -1;
    df_str_wipe(&h->password);
    df_str_wipe(&h->aws_token);
    free(h->aws_scope);
    h->aws_scope = DF_TAKE(scope);
    h->aws_token = DF_TAKE(token);
    return df_check_alloc(h->password = strdup(keys->secret_key), err);
}

void df_http_wake(struct df_http *h)
{
    (void)curl_multi_wakeup(h->multi);
}

void df_http_response_free(struct df_http_response *r)
{
    df_buf_free(&r->body);
}

int df_http_global_init(struct df_err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return df_fail(err, DF_ERR_SYSTEM, "libcurl cannot be initialised");
    return 0;
}

static bool is_redirect(const struct df_http_request *req, const struct df_http_response *res)
{
    int s = res->status;
    return (s == 301 || s == 302 || s == 303 || s == 307 || s == 308) && res->location[0] &&
           (df_streq(req->method, "GET") || df_streq(req->method, "HEAD"));
}

/* Returns the milliseconds left until the deadline (never 0), or 0 if there is none. */
static int64_t left_until(int64_t deadline_ms)
{
    if (deadline_ms < 0)
        return 0;
    int64_t left = deadline_ms - df_mono_ms();
    return left > 0 ? left : 1;
}

static bool is_method(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return n && !s[n];
}

int df_http_send(struct df_http *h, const struct df_http_request *req, struct df_http_response *ret,
                 struct df_err *err)
{
    if (!is_method(req->method))
        return df_fail(err, DF_ERR_USER, "\"%s\" is no HTTP method", req->method);
    int64_t timeout = req->timeout_ms ? req->timeout_ms : DF_TIMEOUT_REQUEST_MS;
    int64_t deadline = timeout < 0 ? -1 : df_mono_ms() + timeout;
    DF_HTTP_TARGET struct df_http_target to = {0};
    if (df_http_target_parse(req->url, h->allow_file, &to, err) < 0)
        return -1;
    for (int redirects = 0;; redirects++) {
        DF_HTTP_RESPONSE struct df_http_response res = {0};
        if (df_http_exchange(h, req, &to, left_until(deadline), &res, err) < 0) {
            ret->is_unsent = res.is_unsent && redirects == 0;
            return -1;
        }
        if (!h->follow_redirects || !is_redirect(req, &res)) {
            res.is_foreign = !to.trusted;
            *ret = res;
            res = (struct df_http_response){0};
            return 0;
        }
        if (redirects == MAX_REDIRECTS)
            return df_fail(err, DF_ERR_USER, "GET %s: more than %d redirects", to.shown,
                           MAX_REDIRECTS);
        if (df_http_target_redirect(&to, res.location, err) < 0)
            return -1;
    }
}

int df_http_get(struct df_http *h, const char *url, const char *what, struct df_buf *ret,
                struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.max_response = ret->max;
    if (df_http_send(h, &req, &answer, err) < 0 || df_http_check(&answer, what, err) < 0)
        return -1;
    (void)df_buf_add(ret, answer.body.data, answer.body.len);
    return df_buf_check(ret, err);
}
