/*
 * Requests to a spawner over libcurl: JSON calls first (read df_client_call()), then uploads and
 * downloads, and at the end event streams.
 */
#include "spawner/cli/client.h"

#include <stdarg.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/cli/login/logins.h"

struct df_client {
    struct df_client_address address;
    int64_t renew_us; /* of a login: when its token is to be read again; real time */
    struct df_http *http;
};

void df_client_address_free(struct df_client_address *a)
{
    free(a->url);
    df_str_wipe(&a->token);
    free(a->ca_file);
    *a = (struct df_client_address){0};
}

int df_client_address_copy(const struct df_client_address *from, struct df_client_address *ret,
                           struct df_err *err)
{
    struct df_client_address copy = {.is_login = from->is_login, .is_stray = from->is_stray};
    if (df_str_set(&copy.url, from->url, err) < 0 ||
        df_str_set(&copy.token, from->token, err) < 0 ||
        df_str_set(&copy.ca_file, from->ca_file, err) < 0) {
        df_client_address_free(&copy);
        return -1;
    }
    *ret = copy;
    return 0;
}

void df_client_free(struct df_client *c)
{
    if (!c)
        return;
    df_http_free(c->http);
    df_client_address_free(&c->address);
    free(c);
}

static int client_init(struct df_client *c, const struct df_client_address *address,
                       struct df_err *err)
{
    if (df_client_address_copy(address, &c->address, err) < 0)
        return -1;
    struct df_http_options o = {.ca_file = c->address.ca_file, .bearer = c->address.token};
    return df_http_new(&o, &c->http, err);
}

int df_client_new(const struct df_client_address *address, struct df_client **ret,
                  struct df_err *err)
{
    struct df_client *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    if (client_init(c, address, err) < 0) {
        df_client_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

const struct df_client_address *df_client_address_of(const struct df_client *c)
{
    return &c->address;
}

char *df_path(const char *first, ...)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_adds(&b, "/v1");
    va_list ap;
    va_start(ap, first);
    for (const char *s = first; s; s = va_arg(ap, const char *)) {
        DF_FREE char *escaped = df_url_escape(s);
        if (!escaped || df_buf_addf(&b, "/%s", escaped) < 0) {
            va_end(ap);
            return NULL;
        }
    }
    va_end(ap);
    return df_buf_take(&b);
}

int df_client_renew(struct df_client *c, struct df_err *err)
{
    char *token = NULL;
    if (!c->address.is_login || df_real_us() < c->renew_us)
        return 0;
    if (df_logins_token(c->address.url, &token, &c->renew_us, err) < 0)
        return -1;
    df_str_wipe(&c->address.token);
    c->address.token = token;
    return df_http_set_bearer(c->http, token, err);
}

static char *url_of(const struct df_client *c, const char *path)
{
    return path ? df_strf("%s%s", c->address.url, path) : NULL;
}

/* Adds the server's address to the message if the request got no answer. */
static int send_to_anyone(struct df_client *c, const struct df_http_request *req,
                          struct df_http_response *ret, struct df_err *err)
{
    if (df_http_send(c->http, req, ret, err) < 0)
        return df_err_wrap(err, "server %s", c->address.url);
    return 0;
}

static int send_to(struct df_client *c, const struct df_http_request *req,
                   struct df_http_response *ret, struct df_err *err)
{
    return df_client_renew(c, err) < 0 ? -1 : send_to_anyone(c, req, ret, err);
}

static int add_idempotency_key(struct df_strs *headers, const char *key, struct df_err *err)
{
    char fresh[37];
    if (!key && df_uuid(fresh, err) < 0)
        return -1;
    (void)df_strs_addf(headers, "Idempotency-Key: %s", key ? key : fresh);
    return df_strs_check(headers, err);
}

/* After 401: adds to the message where this command takes its token from. */
static int name_token(const struct df_client *c, int status, struct df_err *err)
{
    if (status != 401)
        return -1;
    struct df_err whole = *err;
    if (c->address.is_login)
        return df_fail_reason(err, whole.cls, whole.reason,
                              "%s; the token of this command is that of `dayfly login`: sign in "
                              "again",
                              whole.message);
    return df_fail_reason(err, whole.cls, whole.reason,
                          "%s; the token of this command is the first line of --token-file FILE, "
                          "else DAYFLY_TOKEN, else that of `dayfly login`%s",
                          whole.message,
                          c->address.is_stray
                              ? ". The service of this machine got it, because neither "
                                "--server nor DAYFLY_SERVER is set: name the service that it "
                                "is for, or unset DAYFLY_TOKEN"
                              : "");
}

/* The message becomes the problem's `detail`, which is for people; class and reason stay. */
static int check_answer(const struct df_client *c, const struct df_http_response *r,
                        const char *what, struct df_err *err)
{
    if (df_http_check(r, what, err) == 0)
        return 0;
    DF_JSON cJSON *problem = NULL;
    struct df_err ignored, whole = *err;
    if (df_json_parse(df_buf_str(&r->body), r->body.len, &problem, &ignored) < 0)
        return -1;
    const char *detail = df_json_str(problem, "detail");
    if (detail)
        (void)df_fail_reason(err, whole.cls, whole.reason, "%s", detail);
    return name_token(c, r->status, err);
}

static int parse_answer(const struct df_client *c, const struct df_http_response *r,
                        const char *what, cJSON **ret, struct df_err *err)
{
    if (check_answer(c, r, what, err) < 0)
        return -1;
    if (!ret)
        return 0;
    if (!r->body.len) {
        *ret = NULL;
        return 0;
    }
    if (df_json_parse_nul(df_buf_str(&r->body), r->body.len, ret, err) < 0) {
        err->cls = DF_ERR_SYSTEM;
        return df_err_wrap(err, "%s: the answer is not JSON", what);
    }
    return 0;
}

int df_client_call(struct df_client *c, const char *method, const char *path, const cJSON *body,
                   const char *key, cJSON **ret, struct df_err *err)
{
    DF_FREE char *url = url_of(c, path);
    DF_FREE char *text = body ? df_json_print(body) : NULL;
    if (body && !text)
        return df_fail_oom(err);
    DF_STRS struct df_strs headers = {0};
    struct df_http_request req = DF_HTTP_REQUEST(method, url);
    if (df_streq(method, "POST")) {
        if (add_idempotency_key(&headers, key, err) < 0)
            return -1;
        req.headers = &headers;
    }
    req.body = text;
    req.body_len = text ? strlen(text) : 0;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to(c, &req, &r, err) < 0)
        return -1;
    DF_FREE char *what = df_strf("%s %s", method, path);
    return parse_answer(c, &r, what ? what : method, ret, err);
}

#define ALIVE_TIMEOUT_MS 3000

int df_client_alive(struct df_client *c, struct df_err *err)
{
    DF_FREE char *url = url_of(c, "/livez");
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.timeout_ms = ALIVE_TIMEOUT_MS;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to_anyone(c, &req, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return df_fail(err, DF_ERR_RETRY, "server %s answers %d to /livez", c->address.url,
                       r.status);
    return 0;
}

int df_client_put_bytes(struct df_client *c, const char *path, const void *bytes, size_t n,
                        struct df_err *err)
{
    DF_FREE char *url = url_of(c, path);
    struct df_http_request req = DF_HTTP_REQUEST("PUT", url);
    req.content_type = "application/octet-stream";
    req.body = bytes;
    req.body_len = n;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to(c, &req, &r, err) < 0)
        return -1;
    return check_answer(c, &r, path, err);
}

int df_client_post_file(struct df_client *c, const char *path, int fd, size_t n, cJSON **ret,
                        struct df_err *err)
{
    DF_FREE char *url = url_of(c, path);
    struct df_http_request req = DF_HTTP_REQUEST("POST", url);
    req.body_fd = fd;
    req.body_len = n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = DF_TIMEOUT_REQUEST_MS;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to(c, &req, &r, err) < 0)
        return -1;
    return parse_answer(c, &r, path, ret, err);
}

int df_client_fetch(struct df_client *c, const char *path, df_bytes_fn fn, void *arg,
                    struct df_err *err)
{
    DF_FREE char *url = url_of(c, path);
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.timeout_ms = -1;
    req.idle_timeout_ms = DF_TIMEOUT_REQUEST_MS;
    req.on_data = fn;
    req.arg = arg;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to(c, &req, &r, err) < 0)
        return -1;
    return check_answer(c, &r, path, err);
}

struct download {
    int fd;
    struct df_err err;
};

static int download_piece(void *arg, const char *bytes, size_t n)
{
    struct download *d = arg;
    return df_fs_write_all(d->fd, bytes, n, &d->err);
}

int df_client_download(struct df_client *c, const char *path, int fd, struct df_err *err)
{
    struct download d = {.fd = fd};
    if (df_client_fetch(c, path, download_piece, &d, err) < 0)
        return -1;
    if (d.err.cls)
        return df_err_pass(err, &d.err);
    return 0;
}

struct stream {
    struct df_sse sse;
    struct df_err err;
};

static int stream_piece(void *arg, const char *bytes, size_t n)
{
    struct stream *s = arg;
    return df_sse_feed(&s->sse, bytes, n, &s->err);
}

static int stream_headers(const char *last_id, struct df_strs *headers, struct df_err *err)
{
    (void)df_strs_add(headers, "Accept: text/event-stream");
    if (!df_str_empty(last_id))
        (void)df_strs_addf(headers, "Last-Event-ID: %s", last_id);
    return df_strs_check(headers, err);
}

static int read_stream(struct df_client *c, const struct df_client_stream *stream, struct stream *s,
                       struct df_err *err)
{
    DF_FREE char *url = url_of(c, stream->path);
    DF_STRS struct df_strs headers = {0};
    if (df_check_alloc(url, err) < 0 || stream_headers(stream->last_id, &headers, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.headers = &headers;
    req.timeout_ms = -1;
    req.idle_timeout_ms = DF_CLIENT_SILENCE_MS;
    req.on_data = stream_piece;
    req.arg = s;
    req.stop = stream->stop;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (send_to(c, &req, &r, err) < 0)
        return -1;
    if (s->err.cls) {
        (void)df_err_pass(err, &s->err);
        return df_err_wrap(err, "%s", stream->path);
    }
    return check_answer(c, &r, stream->path, err);
}

int df_client_stream(struct df_client *c, const struct df_client_stream *stream, struct df_err *err)
{
    struct stream s = {0};
    df_sse_init(&s.sse, stream->fn, stream->arg);
    int result = read_stream(c, stream, &s, err);
    df_sse_free(&s.sse);
    return result;
}
