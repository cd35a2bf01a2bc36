/*
 * One request to the API server: a pool of kept connections, the query, credentials, the fence of a
 * leader, and the answer as df_err. Read df_kube_request().
 */
#include "common/kube/client.h"

#include "common/base/clock.h"

#include <errno.h>
#include <pthread.h>

struct df_kube {
    struct df_kube_config config;
    struct df_kube_credentials *credentials;
    pthread_mutex_t lock;
    struct df_kube_conn *idle;
    size_t idle_len;
    bool (*may_write)(void *arg); /* NULL: always */
    void *fence_arg;
    int64_t clock_ahead_us; /* atomic */
};

int df_kube_new(struct df_kube_config *config, struct df_kube **ret, struct df_err *err)
{
    DF_KUBE struct df_kube *k = calloc(1, sizeof(*k));
    if (!k) {
        df_kube_config_free(config);
        return df_fail_oom(err);
    }
    (void)pthread_mutex_init(&k->lock, NULL);
    k->config = *config;
    *config = (struct df_kube_config){0};
    if (df_kube_credentials_new(&k->config, &k->credentials, err) < 0)
        return -1;
    *ret = DF_TAKE(k);
    return 0;
}

void df_kube_free(struct df_kube *k)
{
    if (!k)
        return;
    for (struct df_kube_conn *c = k->idle, *next; c; c = next) {
        next = c->next;
        df_kube_conn_free(c);
    }
    df_kube_credentials_free(k->credentials);
    df_kube_config_free(&k->config);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

void df_kube_fence(struct df_kube *k, bool (*may_write)(void *arg), void *arg)
{
    k->may_write = may_write;
    k->fence_arg = arg;
}

const char *df_kube_namespace(const struct df_kube *k)
{
    return k->config.name_space;
}

const char *df_kube_server(const struct df_kube *k)
{
    return k->config.server;
}

int64_t df_kube_clock_ahead_us(const struct df_kube *k)
{
    return __atomic_load_n(&k->clock_ahead_us, __ATOMIC_RELAXED);
}

/* ---- connections ---------------------------------------------------------------------------- */

int df_kube_conn_new(struct df_kube *k, struct df_kube_conn **ret, struct df_err *err)
{
    const struct df_kube_config *c = &k->config;
    struct df_http_options o = {.ca_file = c->ca_pem ? NULL : c->ca_file,
                                .ca_pem = c->ca_pem,
                                .server_name = c->tls_server_name,
                                .insecure = c->insecure,
                                .user_agent = c->user_agent,
                                .proxy = c->proxy_url};
    struct df_kube_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        return df_fail_oom(err);
    if (df_http_new(&o, &conn->http, err) < 0) {
        free(conn);
        return -1;
    }
    *ret = conn;
    return 0;
}

void df_kube_conn_free(struct df_kube_conn *c)
{
    if (c)
        df_http_free(c->http);
    free(c);
}

static int take_conn(struct df_kube *k, struct df_kube_conn **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&k->lock);
    struct df_kube_conn *c = k->idle;
    if (c) {
        k->idle = c->next;
        k->idle_len--;
        c->next = NULL;
    }
    (void)pthread_mutex_unlock(&k->lock);
    if (!c)
        return df_kube_conn_new(k, ret, err);
    *ret = c;
    return 0;
}

static void give_back(struct df_kube *k, struct df_kube_conn *c)
{
    (void)pthread_mutex_lock(&k->lock);
    bool keep = k->idle_len < DF_LIMIT_KUBE_IDLE;
    if (keep) {
        c->next = k->idle;
        k->idle = c;
        k->idle_len++;
    }
    (void)pthread_mutex_unlock(&k->lock);
    if (!keep)
        df_kube_conn_free(c);
}

/* Sets the current credentials on the connection. */
static int set_credentials(struct df_kube *k, struct df_kube_conn *conn, const volatile bool *stop,
                           struct df_err *err)
{
    DF_KUBE_CREDENTIAL struct df_kube_credential now = {0};
    if (df_kube_credentials_get(k->credentials, conn->generation, stop, &now, err) < 0)
        return -1;
    if (now.token && df_http_set_bearer(conn->http, now.token, err) < 0)
        return -1;
    if (now.cert_pem &&
        df_http_set_client_certificate(conn->http, now.cert_pem, now.key_pem, err) < 0)
        return -1;
    conn->generation = now.generation;
    return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

void df_kube_query(struct df_buf *query, const char *key, const char *value)
{
    if (!value)
        return;
    DF_FREE char *escaped = df_url_escape(value);
    if (escaped)
        (void)df_buf_addf(query, "%s%s=%s", query->len ? "&" : "", key, escaped);
    else
        query->failed = query->failed ? query->failed : ENOMEM;
}

/* Refuses names that would change the path: an empty name, for example, addresses the whole
 * collection. */
static int add_segment(struct df_buf *url, const char *segment, struct df_err *err)
{
    if (!*segment || df_streq(segment, ".") || df_streq(segment, ".."))
        return df_fail(err, DF_ERR_USER, "\"%s\" is not the name of an object", segment);
    DF_FREE char *escaped = df_url_escape(segment);
    if (!escaped)
        return df_fail_oom(err);
    (void)df_buf_addf(url, "/%s", escaped);
    return 0;
}

static int add_path(struct df_buf *url, const struct df_kube_at *at, struct df_err *err)
{
    const struct df_kube_resource *r = at->resource;
    (void)df_buf_addf(url, *r->group ? "/apis/%s/%s" : "/api%s/%s", r->group, r->version);
    if (at->name_space) {
        (void)df_buf_adds(url, "/namespaces");
        if (add_segment(url, at->name_space, err) < 0)
            return -1;
    }
    if (add_segment(url, r->plural, err) < 0)
        return -1;
    if (at->name && add_segment(url, at->name, err) < 0)
        return -1;
    return at->subresource ? add_segment(url, at->subresource, err) : 0;
}

static int make_url(const struct df_kube *k, const struct df_kube_request *r, struct df_buf *url,
                    struct df_err *err)
{
    (void)df_buf_adds(url, k->config.server);
    if (r->path)
        (void)df_buf_adds(url, r->path);
    else if (add_path(url, r->at, err) < 0)
        return -1;
    if (!df_str_empty(r->query))
        (void)df_buf_addf(url, "?%s", r->query);
    return df_buf_check(url, err);
}

char *df_kube_request_what(const struct df_kube_request *r)
{
    if (r->path)
        return df_strf("%s %s", r->verb, r->path);
    const struct df_kube_resource *type = r->at->resource;
    const char *name = r->at->name, *sub = r->at->subresource, *ns = r->at->name_space;
    return df_strf("%s %s%s%s%s%s%s%s%s%s", r->verb, type->plural, *type->group ? "." : "",
                   type->group, sub ? "/" : "", sub ? sub : "", ns || name ? " " : "", ns ? ns : "",
                   ns && name ? "/" : "", name ? name : "");
}

/* ---- the request ---------------------------------------------------------------------------- */

static int send_once(struct df_kube *k, struct df_kube_conn *conn, const struct df_kube_request *r,
                     const struct df_http_request *req, struct df_http_response *res,
                     struct df_err *err)
{
    const volatile bool *stop = r->at ? r->at->stop : NULL;
    if (set_credentials(k, conn, stop, err) < 0)
        return -1;
    /* Check this last, immediately before the request is sent. */
    if (k->may_write && !df_streq(req->method, "GET") && !k->may_write(k->fence_arg))
        return df_fail_reason(err, DF_ERR_RETRY, "NotLeader", "this replica does not lead");
    int64_t from_us = df_real_us();
    if (df_http_send(conn->http, req, res, err) < 0)
        return -1;
    int64_t ahead_us;
    if (!req->on_data && df_http_clock_ahead(res, from_us, &ahead_us) == 0)
        __atomic_store_n(&k->clock_ahead_us, ahead_us, __ATOMIC_RELAXED);
    return 0;
}

/* Repeats the request once after a 401, with newly read credentials. */
static int send_on(struct df_kube *k, struct df_kube_conn *conn, const struct df_kube_request *r,
                   const struct df_http_request *req, struct df_http_response *ret,
                   struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (send_once(k, conn, r, req, &res, err) < 0)
        return -1;
    if (res.status == 401) {
        df_kube_credentials_refused(k->credentials, conn->generation);
        df_http_response_free(&res);
        res = (struct df_http_response){0};
        if (send_once(k, conn, r, req, &res, err) < 0)
            return -1;
    }
    if (df_kube_check(r, &res, err) < 0)
        return -1;
    *ret = res;
    res = (struct df_http_response){0};
    return 0;
}

static int send_request(struct df_kube *k, const struct df_kube_request *r,
                        const struct df_http_request *req, struct df_http_response *ret,
                        struct df_err *err)
{
    if (r->conn)
        return send_on(k, r->conn, r, req, ret, err);
    struct df_kube_conn *conn = NULL;
    if (take_conn(k, &conn, err) < 0)
        return -1;
    int result = send_on(k, conn, r, req, ret, err);
    give_back(k, conn);
    return result;
}

/* Asks for PartialObjectMetadata, or for the form that the caller can read. */
static int add_accept(const struct df_kube_request *r, struct df_strs *headers, struct df_err *err)
{
    if (r->accept) {
        (void)df_strs_addf(headers, "Accept: %s,application/json", r->accept);
        return df_strs_check(headers, err);
    }
    if (!r->at || !r->at->metadata_only)
        return 0;
    bool list = !r->at->name && df_streq(r->method, "GET");
    (void)df_strs_addf(headers,
                       "Accept: application/json;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1",
                       list ? "List" : "");
    return df_strs_check(headers, err);
}

static int prepare_and_send(struct df_kube *k, const struct df_kube_request *r,
                            struct df_http_response *ret, struct df_err *err)
{
    DF_BUF struct df_buf url = DF_BUF_INIT(DF_LIMIT_URL);
    DF_STRS struct df_strs headers = {0};
    if (make_url(k, r, &url, err) < 0 || add_accept(r, &headers, err) < 0)
        return -1;
    DF_CLEANUP(df_buf_wipe) struct df_buf body = DF_BUF_INIT(SIZE_MAX / 4);
    struct df_http_request req = DF_HTTP_REQUEST(r->method, df_buf_str(&url));
    if (r->body) {
        /* Held in a buffer because it may be a Secret, which is wiped. */
        body.data = df_json_print_nul(r->body);
        if (!body.data)
            return df_fail_oom(err);
        body.len = strlen(body.data);
        body.cap = body.len + 1;
        req.body = body.data;
        req.body_len = body.len;
    }
    req.headers = headers.len ? &headers : NULL;
    req.content_type = r->content_type;
    req.timeout_ms = r->timeout_ms;
    req.idle_timeout_ms = r->idle_timeout_ms;
    req.max_response = r->on_data ? 0 : r->max_response ? r->max_response : DF_LIMIT_KUBE_OBJECT;
    req.on_data = r->on_data;
    req.arg = r->arg;
    req.stop = r->at ? r->at->stop : NULL;
    req.stop_wakes = r->stop_wakes;
    return send_request(k, r, &req, ret, err);
}

int df_kube_request(struct df_kube *k, const struct df_kube_request *r,
                    struct df_http_response *ret, struct df_err *err)
{
    if (prepare_and_send(k, r, ret, err) == 0)
        return 0;
    DF_FREE char *what = df_kube_request_what(r);
    return df_err_wrap(err, "%s", what ? what : r->verb);
}

int df_kube_request_json(struct df_kube *k, const struct df_kube_request *r, cJSON **ret,
                         struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_kube_request(k, r, &res, err) < 0)
        return -1;
    if (!ret)
        return 0;
    struct df_err why = {0};
    DF_JSON cJSON *tree = NULL;
    int result =
        df_json_parse_without(df_buf_str(&res.body), res.body.len, r->without, &tree, &why);
    df_buf_wipe(&res.body); /* it may be a Secret */
    if (result < 0) {
        DF_FREE char *what = df_kube_request_what(r);
        return df_fail(err, DF_ERR_RETRY, "%s: the answer is broken: %s", what ? what : r->verb,
                       why.message);
    }
    *ret = DF_TAKE(tree);
    return 0;
}
