/*
 * exchange.c - one request with libcurl: sets connection, TLS, headers and limits as options;
 * run_transfer() drives the transfer, and curl_failure() turns curl's result into an error.
 */
#include <openssl/ssl.h>

#include "common/http/exchange.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"

/* How often an exchange looks at its flag by the clock. An idle one without such a flag sleeps. */
enum { STOP_POLL_MS = 100, IDLE_POLL_MS = 60000 };

/* Why we aborted a transfer. */
enum end { END_NOT, END_RECEIVER, END_STOP, END_IDLE, END_TOO_LARGE, END_MEMORY, END_BODY };

/* One request and its response, as the curl callbacks see it. */
struct exchange {
    CURL *easy;
    const struct df_http_request *req;
    struct df_http_response *res;
    size_t max_response; /* 0: none */
    size_t received, sent;
    int64_t last_byte_ms;
    bool in_header; /* the headers have not ended yet */
    bool head_told;
    enum end end;
    char error[CURL_ERROR_SIZE];
};

/* 0 for file://. */
static int http_status(CURL *easy)
{
    long code = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return (int)code;
}

static int status_of(CURL *easy)
{
    int code = http_status(easy);
    return code ? code : 200;
}

static size_t end_writing(struct exchange *x, enum end why)
{
    x->end = why;
    return CURL_WRITEFUNC_ERROR;
}

static void take_header(CURL *easy, const char *name, char *to, size_t size)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        (void)snprintf(to, size, "%s", h->value);
}

static void take_answer(CURL *easy, struct df_http_response *res)
{
    res->status = status_of(easy);
    take_header(easy, "Content-Type", res->content_type, sizeof(res->content_type));
    take_header(easy, "ETag", res->etag, sizeof(res->etag));
    take_header(easy, "X-Goog-Generation", res->generation, sizeof(res->generation));
    take_header(easy, "X-Amz-Bucket-Region", res->bucket_region, sizeof(res->bucket_region));
    take_header(easy, "Location", res->location, sizeof(res->location));
    take_header(easy, "Date", res->date, sizeof(res->date));
    curl_off_t after = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &after);
    res->retry_after_s = after > 0 && after <= INT32_MAX ? (int)after : -1;
}

static size_t give_data(struct exchange *x, const char *bytes, size_t n)
{
    if (x->req->on_head && !x->head_told) {
        x->head_told = true;
        take_answer(x->easy, x->res);
        x->req->on_head(x->req->arg, x->res);
    }
    return x->req->on_data(x->req->arg, bytes, n) < 0 ? end_writing(x, END_RECEIVER) : n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    n *= size;
    x->last_byte_ms = df_mono_ms();
    x->received += n;
    if (x->max_response && x->received > x->max_response)
        return end_writing(x, END_TOO_LARGE);
    if (x->req->on_data && status_of(x->easy) / 100 == 2)
        return give_data(x, bytes, n);
    if (df_buf_add(&x->res->body, bytes, n) < 0)
        return end_writing(x, x->res->body.failed == E2BIG ? END_TOO_LARGE : END_MEMORY);
    return n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    x->last_byte_ms = df_mono_ms();
    x->in_header = !(bytes[0] == '\r' || bytes[0] == '\n');
    return size * n;
}

/* Reads the next piece of a body from its descriptor. */
static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
    struct exchange *x = arg;
    size_t left = x->req->body_len - x->sent, want = size * n < left ? size * n : left;
    x->last_byte_ms = df_mono_ms();
    if (!want)
        return 0;
    ssize_t got;
    do
        got = pread(x->req->body_fd, to, want, (off_t)x->sent);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        x->end = END_BODY;
        return CURL_READFUNC_ABORT;
    }
    x->sent += (size_t)got;
    return (size_t)got;
}

/* Called when the body must be sent again, on a fresh connection. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct exchange *x = arg;
    if (origin != SEEK_SET || offset < 0 || (size_t)offset > x->req->body_len)
        return CURL_SEEKFUNC_FAIL;
    x->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* Sets one option unless an earlier one failed; the first failure stays in rc. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (rc == CURLE_OK)                                                                        \
            rc = curl_easy_setopt(easy, option, value);                                            \
    } while (0)

static CURLcode set_connection(CURL *easy, const struct df_http *h, const struct df_http_target *to)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_CURLU, to->url);
    SET(CURLOPT_PROTOCOLS_STR, h->allow_file ? "http,https,file" : "http,https");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USERAGENT, h->user_agent);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)h->connect_ms);
    if (h->piece)
        SET(CURLOPT_BUFFERSIZE, (long)h->piece);
    if (h->ca_file)
        SET(CURLOPT_CAINFO, h->ca_file);
    if (h->proxy) {
        SET(CURLOPT_PROXY, h->proxy);
        SET(CURLOPT_NOPROXY, "");
    } else if (to->loopback || to->link_local)
        SET(CURLOPT_PROXY, "");
    return rc;
}

/* curl copies the text. */
static CURLcode set_pem(CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = {.data = pem, .len = pem ? strlen(pem) : 0, .flags = CURL_BLOB_COPY};
    return pem ? curl_easy_setopt(easy, option, &blob) : CURLE_OK;
}

/* libcurl lets OpenSSL free the buffer of a connection whenever it is empty: 16 KiB are allocated
 * for each read, which costs more than the reading. */
static CURLcode keep_read_buffer(CURL *easy, void *context, void *arg)
{
    (void)easy;
    (void)arg;
    (void)SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return CURLE_OK;
}

static CURLcode set_tls(CURL *easy, const struct df_http *h, const struct df_http_target *to)
{
    CURLcode rc = set_pem(easy, CURLOPT_CAINFO_BLOB, h->ca_pem);
    SET(CURLOPT_SSL_CTX_FUNCTION, keep_read_buffer);
    if (h->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!to->trusted)
        return rc;
    rc = rc == CURLE_OK ? set_pem(easy, CURLOPT_SSLCERT_BLOB, h->cert_pem) : rc;
    return rc == CURLE_OK ? set_pem(easy, CURLOPT_SSLKEY_BLOB, h->key_pem) : rc;
}

static CURLcode set_credentials(CURL *easy, const struct df_http *h)
{
    CURLcode rc = CURLE_OK;
    if (h->aws_scope) {
        SET(CURLOPT_AWS_SIGV4, h->aws_scope);
        SET(CURLOPT_USERNAME, h->user);
        SET(CURLOPT_PASSWORD, h->password);
        SET(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    } else if (h->bearer) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        SET(CURLOPT_XOAUTH2_BEARER, h->bearer);
    } else if (h->user) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, h->user);
        SET(CURLOPT_PASSWORD, h->password ? h->password : "");
    }
    return rc;
}

static bool has_body(const struct df_http_request *req)
{
    return req->body || req->body_fd >= 0;
}

static CURLcode set_method(CURL *easy, const struct df_http_request *req)
{
    CURLcode rc = CURLE_OK;
    if (req->once) {
        SET(CURLOPT_FRESH_CONNECT, 1L);
        SET(CURLOPT_FORBID_REUSE, 1L);
    }
    if (df_streq(req->method, "HEAD")) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (!req->body && req->body_fd >= 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->body_len);
        SET(CURLOPT_CUSTOMREQUEST, req->method);
    } else if (has_body(req) ||
               !(df_streq(req->method, "GET") || df_streq(req->method, "DELETE"))) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(req->body ? req->body_len : 0));
        SET(CURLOPT_POSTFIELDS, req->body ? req->body : "");
        SET(CURLOPT_CUSTOMREQUEST, req->method);
    } else {
        SET(CURLOPT_CUSTOMREQUEST, req->method);
    }
    return rc;
}

/* 0: no limit. A response that announces too many bytes is rejected before its body is read. */
static CURLcode set_limits(CURL *easy, size_t max_response, int64_t timeout_ms)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)max_response);
    return rc;
}

static CURLcode set_callbacks(CURL *easy, struct exchange *x)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, (void *)x);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, (void *)x);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, (void *)x);
    SET(CURLOPT_SEEKFUNCTION, on_seek);
    SET(CURLOPT_SEEKDATA, (void *)x);
    SET(CURLOPT_ERRORBUFFER, x->error);
    return rc;
}
#undef SET

static int add_header(struct curl_slist **list, const char *line, struct df_err *err)
{
    if (df_has_control(line))
        return df_fail(err, DF_ERR_USER, "a request header holds a control character");
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer)
        return df_fail_oom(err);
    *list = longer;
    return 0;
}

static void cleanup_slist(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}
#define SLIST DF_CLEANUP(cleanup_slist)

/* What the signature of AWS covers besides curl's own: the digest of the body, which curl takes
 * from this header, and the token. */
static int add_signed(const struct df_http *h, const struct df_http_request *req,
                      struct curl_slist **list, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    if (!req->body && req->body_fd >= 0)
        return df_fail(err, DF_ERR_BUG, "a signed request has its body in memory");
    if (df_sha256_hex(req->body ? req->body : "", req->body ? req->body_len : 0, digest, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("X-Amz-Content-Sha256: %s", digest);
    if (df_check_alloc(line, err) < 0 || add_header(list, line, err) < 0)
        return -1;
    return h->aws_token ? add_header(list, h->aws_token, err) : 0;
}

/* "Name:" removes a header of curl's own: "Expect", which delays large bodies by up to a second,
 * and the type of a body that is not there. A signed request removes none, because curl would sign
 * what it does not send. */
static int make_headers(const struct df_http *h, const struct df_http_request *req,
                        struct curl_slist **list, struct df_err *err)
{
    const char *type = req->content_type ? req->content_type : "application/json";
    DF_FREE char *content_type =
        df_strf("Content-Type:%s%s", has_body(req) ? " " : "", has_body(req) ? type : "");
    if (!content_type)
        return df_fail_oom(err);
    if (h->aws_scope ? add_signed(h, req, list, err) < 0 : add_header(list, "Expect:", err) < 0)
        return -1;
    if ((has_body(req) || !h->aws_scope) && add_header(list, content_type, err) < 0)
        return -1;
    for (size_t i = 0; req->headers && i < req->headers->len; i++)
        if (add_header(list, req->headers->items[i], err) < 0)
            return -1;
    return 0;
}

/* True if the transfer must be aborted, with the reason in x->end; else sets how long to wait for
 * the next byte. */
static bool must_end(struct exchange *x, int *wait_ms)
{
    bool must_look = x->req->stop && !x->req->stop_wakes;
    *wait_ms = must_look ? STOP_POLL_MS : IDLE_POLL_MS;
    if (df_stopped(x->req->stop)) {
        x->end = END_STOP;
        return true;
    }
    if (!x->req->idle_timeout_ms)
        return false;
    int64_t left = x->last_byte_ms + x->req->idle_timeout_ms - df_mono_ms();
    if (left <= 0) {
        x->end = END_IDLE;
        return true;
    }
    *wait_ms = left < *wait_ms ? (int)left : *wait_ms;
    return false;
}

static CURLcode result_of(CURLM *multi)
{
    int left = 0;
    const CURLMsg *m = curl_multi_info_read(multi, &left);
    return m && m->msg == CURLMSG_DONE ? m->data.result : CURLE_ABORTED_BY_CALLBACK;
}

/* Uses the multi interface, because the easy one calls its progress callback only once a second. */
static CURLcode run_transfer(CURLM *multi, struct exchange *x)
{
    if (curl_multi_add_handle(multi, x->easy) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    int running = 1, wait_ms = 0;
    CURLMcode rc = CURLM_OK;
    while (rc == CURLM_OK) {
        rc = curl_multi_perform(multi, &running);
        if (rc != CURLM_OK || !running || must_end(x, &wait_ms))
            break;
        rc = curl_multi_poll(multi, NULL, 0, wait_ms, NULL);
    }
    CURLcode result = rc == CURLM_OK ? result_of(multi) : CURLE_OUT_OF_MEMORY;
    (void)curl_multi_remove_handle(multi, x->easy);
    /* The handle outlives the buffer. */
    (void)curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, NULL);
    return result;
}

static enum df_err_class class_of(CURLcode code)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_BAD_FUNCTION_ARGUMENT:
        return DF_ERR_USER;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return DF_ERR_DENIED;
    case CURLE_FILE_COULDNT_READ_FILE:
        return DF_ERR_NOT_FOUND;
    case CURLE_OUT_OF_MEMORY:
        return DF_ERR_LIMIT;
    default:
        return DF_ERR_RETRY;
    }
}

static int too_large(const struct exchange *x, const char *what, struct df_err *err)
{
    return df_fail(err, DF_ERR_LIMIT, "%s: the answer is larger than %zu bytes", what,
                   x->max_response ? x->max_response : x->res->body.max);
}

static int curl_failure(const struct exchange *x, CURLcode code, const char *what,
                        struct df_err *err)
{
    long sent = 1;
    (void)curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
    x->res->is_unsent = sent == 0;
    switch (x->end) {
    case END_STOP:
        return df_fail(err, DF_ERR_RETRY, "%s: stopped", what);
    case END_IDLE:
        return df_fail_reason(err, DF_ERR_RETRY, "Idle", "%s: nothing moved for %lld ms", what,
                              (long long)x->req->idle_timeout_ms);
    case END_TOO_LARGE:
        return too_large(x, what, err);
    case END_MEMORY:
        return df_fail_oom(err);
    case END_BODY:
        return df_fail(err, DF_ERR_SYSTEM, "%s: the file to send is shorter than %zu bytes", what,
                       x->req->body_len);
    case END_RECEIVER:
    case END_NOT:
        break;
    }
    if (code == CURLE_FILESIZE_EXCEEDED)
        return too_large(x, what, err);
    enum df_err_class cls = class_of(code);
    return df_fail(err, cls, "%s: %s%s", what, x->error[0] ? x->error : curl_easy_strerror(code),
                   cls == DF_ERR_DENIED ? " (does the configured CA certificate belong to it?)"
                                        : "");
}

/* Verifies the certificate for another name than the URL's host: curl gets that name as the host,
 * the address to connect to, and the Host header to send. */
struct alias {
    CURLU *url;
    struct curl_slist *connect_to;
};

static void alias_free(struct alias *a)
{
    curl_url_cleanup(a->url);
    curl_slist_free_all(a->connect_to);
}

static int set_alias(const struct df_http *h, const struct df_http_target *to, struct alias *a,
                     struct curl_slist **headers, struct df_err *err)
{
    char *host = NULL, *port = NULL;
    bool is_v6 = strchr(h->server_name, ':') != NULL;
    DF_FREE char *name = df_strf(is_v6 ? "[%s]" : "%s", h->server_name);
    if (!name)
        return df_fail_oom(err);
    a->url = curl_url_dup(to->url);
    if (!a->url || curl_url_get(to->url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(to->url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        curl_url_set(a->url, CURLUPART_HOST, name, 0) != CURLUE_OK) {
        curl_free(host);
        curl_free(port);
        return df_fail(err, DF_ERR_USER, "\"%s\" is not a server name", h->server_name);
    }
    DF_FREE char *connect = df_strf("::%s:%s", host, port);
    DF_FREE char *header = df_strf("Host: %s:%s", host, port);
    curl_free(host);
    curl_free(port);
    a->connect_to = connect ? curl_slist_append(NULL, connect) : NULL;
    if (!a->connect_to || !header)
        return df_fail_oom(err);
    if (curl_easy_setopt(h->easy, CURLOPT_CURLU, a->url) != CURLE_OK ||
        curl_easy_setopt(h->easy, CURLOPT_CONNECT_TO, a->connect_to) != CURLE_OK)
        return df_fail_oom(err);
    return add_header(headers, header, err);
}

int df_http_exchange(struct df_http *h, const struct df_http_request *req,
                     const struct df_http_target *to, int64_t timeout_ms,
                     struct df_http_response *res, struct df_err *err)
{
    /* The Content-Length of a HEAD response is that of a body that does not follow. */
    bool head = df_streq(req->method, "HEAD");
    size_t cap = req->max_response || req->on_data ? req->max_response : DF_LIMIT_HTTP_RESPONSE;
    struct exchange x = {
        .easy = h->easy, .req = req, .res = res, .max_response = cap, .last_byte_ms = df_mono_ms()};
    /* Even if the body is streamed, an error page is kept in memory. */
    res->body = DF_BUF_INIT(req->on_data ? DF_LIMIT_HTTP_RESPONSE : cap);
    SLIST struct curl_slist *headers = NULL;
    if (make_headers(h, req, &headers, err) < 0)
        return -1;
    curl_easy_reset(h->easy);
    CURLcode rc = set_connection(h->easy, h, to);
    DF_CLEANUP(alias_free) struct alias alias = {0};
    if (rc == CURLE_OK && h->server_name && set_alias(h, to, &alias, &headers, err) < 0)
        return -1;
    rc = rc == CURLE_OK ? set_tls(h->easy, h, to) : rc;
    rc = rc == CURLE_OK && to->trusted ? set_credentials(h->easy, h) : rc;
    rc = rc == CURLE_OK ? set_method(h->easy, req) : rc;
    rc = rc == CURLE_OK ? set_callbacks(h->easy, &x) : rc;
    rc = rc == CURLE_OK ? set_limits(h->easy, head ? 0 : cap, timeout_ms) : rc;
    rc = rc == CURLE_OK ? curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers) : rc;
    rc = rc == CURLE_OK ? run_transfer(h->multi, &x) : rc;
    /* curl accepts a response that ends within its headers as complete. */
    rc = rc == CURLE_OK && x.in_header && http_status(h->easy) ? CURLE_PARTIAL_FILE : rc;
    if (rc != CURLE_OK && x.end != END_RECEIVER) {
        DF_FREE char *what = df_strf("%s %s", req->method, to->shown);
        return curl_failure(&x, rc, what ? what : req->method, err);
    }
    take_answer(h->easy, res);
    res->stopped = x.end == END_RECEIVER;
    return 0;
}
