/* First one attempt, then a call with all of its attempts, then the calls of bucket.h, opening. */
#include "common/blob/driver.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/blob/backend.h"

enum { IDLE_MS = 30000 };

/* Bytes of an object that are received at once: with curl's own 16 KiB an object of 1 MiB takes 64
 * turns of poll and recv, a tenth of what a download costs. In memory once for each request on its
 * way. */
#define PIECE ((size_t)128 * DF_KIB)

/* ---- an attempt ---- */

static void attempt_free(struct df_driver_attempt *a)
{
    df_buf_wipe(&a->url);
    df_strs_free(&a->headers);
    df_http_response_free(&a->res);
}
#define ATTEMPT DF_CLEANUP(attempt_free) struct df_driver_attempt

static bool has_succeeded(const struct df_driver_attempt *a)
{
    return a->res.status >= 200 && a->res.status < 300;
}

bool df_driver_was_refused(const struct df_driver_attempt *a)
{
    return !a->is_last && !has_succeeded(a);
}

int df_driver_exchange(struct df_driver_attempt *a, struct df_err *err)
{
    const struct df_driver_call *c = a->call;
    const struct df_driver_protocol *protocol = a->driver->protocol;
    struct df_http_request req =
        DF_HTTP_REQUEST(protocol->verbs[c->op].method, df_buf_str(&a->url));
    req.headers = &a->headers;
    req.content_type = DF_DRIVER_CONTENT_TYPE;
    req.body = c->body;
    req.body_len = c->n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.max_response = c->max_response;
    req.on_data = c->file ? df_driver_file_take : c->out ? df_bucket_take : NULL;
    req.arg = c->file ? (void *)c->file : c->out;
    if (df_buf_check(&a->url, err) < 0 || df_strs_check(&a->headers, err) < 0 ||
        df_http_send(a->http, &req, &a->res, err) < 0)
        return -1;
    a->fault.status = a->res.status;
    if (!has_succeeded(a))
        protocol->read_fault(&a->res, &a->fault);
    return 0;
}

int64_t df_driver_take_time(struct df_driver_attempt *a)
{
    int64_t theirs_us = 0;
    if (df_http_time(&a->res, &theirs_us) < 0)
        return 0;
    int64_t skew_us = theirs_us - df_real_us();
    __atomic_store_n(&a->driver->skew_us, skew_us, __ATOMIC_RELAXED);
    return llabs(skew_us - a->skew_us);
}

/* ---- a call ---- */

void df_driver_add_parameter(struct df_driver_call *c, const char *name, const char *value)
{
    if (c->query_len == DF_DRIVER_PARAMETERS)
        DF_BUG("a query has more than %d parameters", DF_DRIVER_PARAMETERS);
    c->query[c->query_len++] = (struct df_http_parameter){name, value};
}

static int begin(struct df_driver_attempt *a, struct df_err *err)
{
    const struct df_driver *d = a->driver;
    const struct df_driver_call *c = a->call;
    if (d->protocol->print_url)
        d->protocol->print_url(a, &a->url);
    else if (*c->name && !df_blob_path_is_good(c->name))
        return df_fail(err, DF_ERR_BUG, "\"%s\" is not the name of an object", c->name);
    else
        (void)df_buf_addf(&a->url, "%s%s%s%s", d->url, *c->name ? "/" : "",
                          *c->name ? d->prefix : "", c->name);
    for (size_t i = 0; i < c->query_len; i++)
        df_url_add_parameter(&a->url, c->query[i].name, c->query[i].value);
    if (c->version && !d->protocol->has_generations)
        (void)(*c->version->text ? df_strs_addf(&a->headers, "If-Match: %s", c->version->text)
                                 : df_strs_add(&a->headers, "If-None-Match: *"));
    if (c->first)
        (void)df_strs_addf(&a->headers, "Range: bytes=0-%zu", c->first - 1);
    return df_buf_check(&a->url, err);
}

static int fail_answer(const struct df_driver_attempt *a, struct df_err *err)
{
    const struct df_driver *d = a->driver;
    const struct df_driver_call *c = a->call;
    const struct df_driver_fault *f = &a->fault;
    const char *word = c->what ? c->what : d->protocol->verbs[c->op].word;
    const char *name = c->what ? "" : c->name;
    DF_BUF struct df_buf way_out = DF_BUF_INIT(DF_KIB);
    d->protocol->add_way_out(a, &way_out);
    (void)df_fail(err, d->protocol->class_of(c, f), "%s%s%s of %s: HTTP %d%s%s%s%s%s", word,
                  *name ? " " : "", name, d->bucket.place, f->status, *f->code ? " " : "", f->code,
                  *f->message ? ": " : "", f->message, df_buf_str(&way_out));
    if (err && a->res.retry_after_s > 0)
        err->retry_after_s = a->res.retry_after_s;
    return -1;
}

/* fault: of an answer that is a failure; its status is 0 without an answer. */
static int send_with(struct df_http *h, struct df_driver *d, const struct df_driver_call *c,
                     struct df_http_response *ret, struct df_driver_fault *fault,
                     struct df_err *err)
{
    for (bool is_last = false;; is_last = true) {
        ATTEMPT a = {.driver = d,
                     .call = c,
                     .http = h,
                     .skew_us = __atomic_load_n(&d->skew_us, __ATOMIC_RELAXED),
                     .url = DF_BUF_INIT(DF_LIMIT_URL),
                     .is_last = is_last};
        if (begin(&a, err) < 0 || d->protocol->attempt(&a, err) < 0)
            return -1;
        if (has_succeeded(&a)) {
            *ret = a.res;
            a.res = (struct df_http_response){0};
            return 0;
        }
        if (!a.may_repeat) {
            *fault = a.fault;
            return fail_answer(&a, err);
        }
    }
}

static int send_call(struct df_driver *d, const struct df_driver_call *c,
                     struct df_http_response *ret, struct df_driver_fault *fault,
                     struct df_err *err)
{
    struct df_http *h = NULL;
    if (df_http_pool_take(d->pool, &h, err) < 0)
        return -1;
    int result = send_with(h, d, c, ret, fault, err);
    df_http_pool_give(d->pool, h);
    return result;
}

int df_driver_send(struct df_driver *d, const struct df_driver_call *c,
                   struct df_http_response *ret, struct df_err *err)
{
    struct df_driver_fault fault = {0};
    struct df_err why = {0};
    if (send_call(d, c, ret, &fault, &why) == 0)
        return 0;
    if (!fault.status || !d->protocol->recover)
        return df_err_pass(err, &why);
    return d->protocol->recover(d, c, &fault, &why, err) < 0 ? -1
                                                             : send_call(d, c, ret, &fault, err);
}

enum df_err_class df_driver_class_of(int status)
{
    switch (status) {
    case 401:
    case 403:
        return DF_ERR_DENIED;
    case 412:
        return DF_ERR_CONFLICT;
    case 429:
        return DF_ERR_RETRY;
    default:
        return status < 400 ? DF_ERR_USER : status < 500 ? DF_ERR_SYSTEM : DF_ERR_RETRY;
    }
}

/* ---- the calls of bucket.h ---- */

static int take_version(const struct df_driver *d, const char *name,
                        const struct df_http_response *res, struct df_bucket_version *ret,
                        struct df_err *err)
{
    bool is_generation = d->protocol->has_generations;
    const char *text = is_generation ? res->generation : res->etag;
    if (is_generation && !*text)
        return df_fail(err, DF_ERR_SYSTEM, "get %s of %s: the answer has no x-goog-generation",
                       name, d->bucket.place);
    if (!*text || strlen(text) >= sizeof(ret->text))
        return df_fail(err, DF_ERR_SYSTEM, "get %s of %s: \"%s\" is not an ETag", name,
                       d->bucket.place, text);
    df_copy(ret->text, sizeof(ret->text), text);
    return 0;
}

static int get_object(struct df_bucket *b, const char *name, struct df_buf *out,
                      struct df_bucket_version *ret_version, struct df_err *err)
{
    struct df_driver *d = df_driver_of(b);
    const struct df_driver_call c = {
        .op = DF_DRIVER_GET, .name = name, .max_response = out->max, .out = out};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_driver_send(d, &c, &res, err) < 0 || df_buf_check(out, err) < 0)
        return -1;
    return take_version(d, name, &res, ret_version, err);
}

static int save_object(struct df_bucket *b, const char *name, int fd, int64_t max,
                       struct df_err *err)
{
    struct df_driver_file file;
    const struct df_driver_call c = {.op = DF_DRIVER_GET, .name = name, .file = &file};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_driver_file_begin(&file, fd, max, err) < 0 ||
        df_driver_send(df_driver_of(b), &c, &res, err) < 0)
        return -1;
    return df_driver_file_end(&file, err);
}

static int put_object(struct df_bucket *b, const char *name, const void *bytes, size_t n,
                      const struct df_bucket_version *version, struct df_err *err)
{
    const struct df_driver_call c = {
        .op = DF_DRIVER_PUT, .name = name, .body = bytes, .n = n, .version = version};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return df_driver_send(df_driver_of(b), &c, &res, err);
}

static int remove_object(struct df_bucket *b, const char *name,
                         const struct df_bucket_version *version, struct df_err *err)
{
    const struct df_driver_call c = {.op = DF_DRIVER_REMOVE, .name = name, .version = version};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return df_driver_send(df_driver_of(b), &c, &res, err);
}

/* Names that are not below the prefix, or not made of segments of safe characters, are not ours; in
 * a URL they could lead elsewhere. */
int df_driver_give(const struct df_driver_page *p, const char *whole, int64_t size, int64_t made_us,
                   struct df_err *err)
{
    const char *prefix = p->driver->prefix;
    return df_blob_path_is_good(whole) && df_starts_with(whole, prefix)
               ? p->sink->item(p->sink->arg, whole + strlen(prefix), size, made_us, err)
               : 0;
}

static int list_objects(struct df_bucket *b, const char *prefix, char **after,
                        const struct df_bucket_sink *sink, struct df_err *err)
{
    struct df_driver *d = df_driver_of(b);
    DF_FREE char *whole = df_strf("%s%s", d->prefix, prefix);
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_driver_page page = {d, sink, NULL};
    struct df_driver_call c = {.op = DF_DRIVER_LIST, .name = ""};
    if (!whole)
        return df_fail_oom(err);
    d->protocol->ask_for_page(&c, whole, *after);
    if (df_driver_send(d, &c, &res, err) < 0)
        return -1;
    int result = d->protocol->read_page(&page, &res.body, err);
    if (result == 0) {
        free(*after);
        *after = DF_TAKE(page.next);
    }
    free(page.next);
    return result;
}

static int list_kept(struct df_bucket *b, const char *name, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    struct df_driver *d = df_driver_of(b);
    DF_FREE char *whole = df_strf("%s%s", d->prefix, name);
    return whole ? d->protocol->list_kept(d, whole, max, sink, err) : df_fail_oom(err);
}

static int get_kept(struct df_bucket *b, const char *name, const char *id, size_t n,
                    struct df_buf *out, struct df_err *err)
{
    struct df_driver *d = df_driver_of(b);
    struct df_driver_call c = {
        .op = DF_DRIVER_GET, .name = name, .first = n, .max_response = out->max, .out = out};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    df_driver_add_parameter(&c, d->protocol->version_parameter, id);
    return df_driver_send(d, &c, &res, err) < 0 ? -1 : df_buf_check(out, err);
}

/* ---- opening ---- */

int df_driver_check_prefix(const char *prefix, struct df_err *err)
{
    if (df_blob_key_is_good(prefix))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "\"%s\" is not a prefix: segments of A-Z a-z 0-9 . _ - with / between them",
                   prefix);
}

int df_driver_check_endpoint(const char *endpoint, struct df_err *err)
{
    if (df_str_empty(endpoint))
        return 0;
    if (strpbrk(endpoint, "?#@")) /* it is not shown: it may hold a signature or a password */
        return df_fail(err, DF_ERR_USER,
                       "an endpoint is https://host[:port], with neither a user nor a query: "
                       "credentials come from the environment (docs/configuration.md)");
    if (df_starts_with(endpoint, "https://") || df_starts_with(endpoint, "http://"))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "\"%s\" is not an endpoint, which begins with https:// or http://: "
                   "https://host[:port]",
                   endpoint);
}

int df_driver_at(bool names_keys, const char *key, struct df_err *err)
{
    return names_keys ? df_err_wrap(err, "%s", key) : -1;
}

static void close_driver(struct df_bucket *b)
{
    struct df_driver *d = df_driver_of(b);
    df_http_pool_free(d->pool);
    d->protocol->free(d);
    free(d->bucket.place);
    free(d->url);
    free(d->prefix);
    free(d->ca_file);
    free(d->ca_pem);
    free(d);
}

#define CALLS                                                                                      \
    .close = close_driver, .get = get_object, .save = save_object, .put = put_object,              \
    .remove = remove_object, .list = list_objects

static const struct df_bucket_ops ops = {CALLS};
static const struct df_bucket_ops ops_with_versions = {CALLS, .list_kept = list_kept,
                                                       .get_kept = get_kept};

int df_driver_init(struct df_driver *d, const struct df_driver_options *o, struct df_err *err)
{
    bool whole = df_str_empty(o->prefix);
    DF_FREE char *bucket = o->bucket;
    d->bucket.ops = o->protocol->list_kept ? &ops_with_versions : &ops;
    d->protocol = o->protocol;
    d->names_keys = o->names_keys;
    d->url = o->url;
    d->prefix = whole ? strdup("") : df_strf("%s/", o->prefix);
    d->bucket.place =
        bucket ? df_strf("%s%s%s", bucket, whole ? "" : "/", whole ? "" : o->prefix) : NULL;
    if (df_check_alloc(d->url, err) < 0 || df_check_alloc(d->prefix, err) < 0 ||
        df_check_alloc(d->bucket.place, err) < 0 || df_str_set(&d->ca_file, o->ca_file, err) < 0 ||
        df_str_set(&d->ca_pem, o->ca_pem, err) < 0)
        return -1;
    const struct df_http_options http = {
        .ca_file = d->ca_file, .ca_pem = d->ca_pem, .piece = PIECE};
    return df_http_pool_new(&http, &d->pool, err);
}

int df_driver_opened(struct df_driver *d, int result, struct df_bucket **ret, struct df_err *err)
{
    bool names_keys = d->names_keys;
    if (result < 0) {
        close_driver(&d->bucket);
        return df_driver_at(names_keys, "blobs.location", err);
    }
    *ret = &d->bucket;
    return 0;
}

/* ---- where save() writes ---- */

int df_driver_file_begin(struct df_driver_file *f, int fd, int64_t max, struct df_err *err)
{
    *f = (struct df_driver_file){.fd = fd, .left = max};
    return ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0
               ? df_fail_errno(err, errno, "empty the file of an object")
               : 0;
}

int df_driver_file_take(void *arg, const char *bytes, size_t n)
{
    struct df_driver_file *f = arg;
    if ((int64_t)n > f->left)
        return df_fail(&f->err, DF_ERR_LIMIT, "the object is too large");
    f->left -= (int64_t)n;
    return df_fs_write_all(f->fd, bytes, n, &f->err);
}

int df_driver_file_end(const struct df_driver_file *f, struct df_err *err)
{
    return f->err.cls ? df_err_pass(err, &f->err) : 0;
}
