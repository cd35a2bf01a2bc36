/*
 * The driver of a bucket (bucket.h) that speaks S3: one signed request for each call. First the
 * URL, then failures, the request, the calls, opening.
 */
#include "common/blob/s3.h"

#include <arpa/inet.h>
#include <time.h>

#include "common/aws/credentials.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/blob/backend.h"
#include "common/blob/driver.h"
#include "common/http/pool.h"
#include "common/xml/xml.h"

enum { IDLE_MS = 30000 };

struct s3 {
    struct df_bucket bucket;
    char *url;    /* of the bucket, without a slash at the end */
    char *prefix; /* with a slash at the end, or "" */
    char *region;
    char *other_region; /* or NULL */
    bool is_elsewhere;  /* atomic: the other region is the right one */
    char *ca_file;      /* or NULL, as the next */
    char *ca_pem;
    struct df_aws_credentials *credentials;
    struct df_http_pool *pool;
    int64_t skew_us; /* atomic: what the store's clock is ahead of ours, once that mattered */
    bool names_keys; /* as of the options */
    bool in_host;    /* the bucket stands before the host of an endpoint that is not AWS's */
    bool answered;   /* atomic: somebody did, so the URL is good */
};

static struct s3 *s3_of(struct df_bucket *b)
{
    return (struct s3 *)b; /* its first member */
}

static const char *region_of(const struct s3 *s)
{
    return __atomic_load_n(&s->is_elsewhere, __ATOMIC_RELAXED) ? s->other_region : s->region;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What the body of an error says. */
struct fault {
    char code[64], message[256], region[64];
};

static int take_fault(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct fault *f = arg;
    (void)err;
    if (df_streq(path, "Error/Code"))
        (void)snprintf(f->code, sizeof(f->code), "%s", text);
    else if (df_streq(path, "Error/Message"))
        (void)snprintf(f->message, sizeof(f->message), "%s", text);
    else if (df_streq(path, "Error/Region"))
        (void)snprintf(f->region, sizeof(f->region), "%s", text);
    return 0;
}

#define RIGHTS                                                                                     \
    "the keys need s3:GetObject, s3:PutObject and s3:DeleteObject on its objects, and "            \
    "s3:ListBucket on the bucket"
#define IN_PATH "if the store has no host name for each bucket, set blobs.s3.pathStyle: true"

/* What a code means whose status does not say it, and what to do about it. */
static const struct meaning {
    const char *code;
    enum df_err_class cls; /* NONE: that of the status */
    bool of_keys;          /* say where they come from */
    bool of_region;
    const char *way_out; /* for who has the keys blobs.*; or NULL */
} meanings[] = {
    {"NoSuchBucket", DF_ERR_USER, .way_out = "name a bucket that exists in blobs.location"},
    {"NoSuchKey", DF_ERR_NOT_FOUND},
    {"NoSuchVersion", DF_ERR_NOT_FOUND},
    {"PermanentRedirect", DF_ERR_USER, .of_region = true},
    {"AuthorizationHeaderMalformed", DF_ERR_USER, .of_region = true},
    {"AccessDenied", .of_keys = true, .way_out = RIGHTS},
    {"AllAccessDisabled", .of_keys = true},
    {"InvalidAccessKeyId", .of_keys = true, .way_out = "give those of a user of this store"},
    {"SignatureDoesNotMatch", .of_keys = true, .way_out = "correct the secret key there"},
    {"InvalidToken", .of_keys = true},
    {"ExpiredToken", DF_ERR_DENIED, .of_keys = true},
    {"RequestTimeout", DF_ERR_RETRY},
    {"SlowDown", DF_ERR_RETRY},
    {"OperationAborted", DF_ERR_RETRY},
    {"ConditionalRequestConflict", DF_ERR_RETRY},
    {"BadDigest", DF_ERR_RETRY}, /* a byte was changed on the way */
    {"XAmzContentSHA256Mismatch", DF_ERR_RETRY},
};

static const struct meaning *meaning_of(const struct fault *f)
{
    static const struct meaning none = {""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(meanings); i++)
        if (df_streq(meanings[i].code, f->code))
            return &meanings[i];
    return &none;
}

static enum df_err_class class_of(const struct meaning *m, int status)
{
    if (m->cls)
        return m->cls;
    /* 404 of somebody on the way: the store names what is not there. */
    if (status == 404 || status == 409)
        return DF_ERR_RETRY;
    return df_driver_class_of(status);
}

static void add_region(const struct s3 *s, const struct meaning *m, const char *theirs,
                       struct df_buf *out)
{
    const char *key = s->names_keys ? "blobs.s3.region" : "the region";
    if (*theirs && !df_streq(theirs, region_of(s)))
        (void)df_buf_addf(out, "; set %s to %s", key, theirs);
    else if (m->of_region)
        (void)df_buf_addf(out, "; set %s, which is %s, to that of the bucket", key, region_of(s));
}

/* Appends what to do about an answer. */
static void add_way_out(const struct s3 *s, const struct meaning *m, const char *region,
                        struct df_buf *out)
{
    add_region(s, m, region, out);
    if (m->of_keys) {
        (void)df_buf_adds(out, "; the keys come from ");
        df_aws_credentials_source(s->credentials, out);
    }
    if (s->names_keys && m->way_out)
        (void)df_buf_addf(out, "; %s", m->way_out);
    if (s->names_keys && s->in_host && df_streq(m->code, "NoSuchBucket"))
        (void)df_buf_adds(out, "; " IN_PATH);
}

static int fail_answer(struct s3 *s, const char *verb, const char *name,
                       const struct df_http_response *res, const struct fault *f,
                       struct df_err *err)
{
    const struct meaning *m = meaning_of(f);
    DF_BUF struct df_buf way_out = DF_BUF_INIT(DF_KIB);
    add_way_out(s, m, *f->region ? f->region : res->bucket_region, &way_out);
    (void)df_fail(err, class_of(m, res->status), "%s %s of %s: HTTP %d%s%s%s%s%s", verb, name,
                  s->bucket.place, res->status, *f->code ? " " : "", f->code,
                  *f->message ? ": " : "", f->message, df_buf_str(&way_out));
    if (err && res->retry_after_s > 0)
        err->retry_after_s = res->retry_after_s;
    return -1;
}

/* No answer. A host with the bucket before it may have no address, or no certificate. */
static int fail_way(const struct s3 *s, struct df_err *err)
{
    bool answered = __atomic_load_n(&s->answered, __ATOMIC_RELAXED);
    if (err && s->names_keys && s->in_host && !answered) {
        size_t n = strlen(err->message);
        (void)snprintf(err->message + n, sizeof(err->message) - n, "; %s", IN_PATH);
    }
    return -1;
}

/* ---- the request ------------------------------------------------------------------------------ */

struct call {
    const char *verb;
    const char *name;  /* of an object; "": the bucket itself */
    const char *query; /* sorted and escaped, as it is signed; or NULL */
    const void *body;
    size_t n;
    const struct df_bucket_version *version; /* NULL: any */
    size_t first;                            /* bytes of the object that are wanted; 0: all */
    size_t max_response;
    struct df_buf *out;          /* for the content, or NULL */
    struct df_driver_file *file; /* the same */
};

/* A clock that is wrong by more than a quarter of an hour would make every request invalid. */
static int add_headers(struct s3 *s, const struct call *c, struct df_strs *headers,
                       struct df_err *err)
{
    int64_t skew_us = __atomic_load_n(&s->skew_us, __ATOMIC_RELAXED);
    if (skew_us) {
        time_t now = (time_t)((df_real_us() + skew_us) / 1000000);
        char date[sizeof("20261121T085001Z")];
        struct tm tm;
        if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm))
            (void)df_strs_addf(headers, "X-Amz-Date: %s", date);
    }
    if (c->version && *c->version->text)
        (void)df_strs_addf(headers, "If-Match: %s", c->version->text);
    else if (c->version)
        (void)df_strs_add(headers, "If-None-Match: *");
    if (c->first)
        (void)df_strs_addf(headers, "Range: bytes=0-%zu", c->first - 1);
    return df_strs_check(headers, err);
}

static int send_signed(struct s3 *s, struct df_http *h, const struct df_aws_keys *keys,
                       const struct call *c, struct df_http_response *res, struct df_err *err)
{
    if (*c->name && !df_blob_path_is_good(c->name))
        return df_fail(err, DF_ERR_BUG, "\"%s\" is not the name of an object", c->name);
    const struct df_http_aws aws = {keys->access_key, keys->secret_key, keys->token, region_of(s),
                                    "s3"};
    DF_STRS struct df_strs headers = {0};
    DF_FREE char *url =
        df_strf("%s%s%s%s%s%s", s->url, *c->name ? "/" : "", *c->name ? s->prefix : "", c->name,
                c->query ? "?" : "", c->query ? c->query : "");
    if (!url)
        return df_fail_oom(err);
    if (df_http_set_aws(h, &aws, err) < 0 || add_headers(s, c, &headers, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST(c->verb, url);
    req.headers = &headers;
    req.content_type = "application/octet-stream";
    req.body = c->body;
    req.body_len = c->n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.max_response = c->max_response;
    req.on_data = c->file ? df_driver_file_take : c->out ? df_bucket_take : NULL;
    req.arg = c->file ? (void *)c->file : c->out;
    if (df_http_send(h, &req, res, err) < 0)
        return fail_way(s, err);
    __atomic_store_n(&s->answered, true, __ATOMIC_RELAXED);
    return 0;
}

/* True if a second request with newer credentials, the other region or the store's time may be
 * accepted. */
static bool may_be_accepted(struct s3 *s, const struct df_aws_keys *keys, const struct fault *f,
                            const struct df_http_response *res)
{
    static const char *const of_keys[] = {"ExpiredToken", "TokenRefreshRequired", "InvalidToken",
                                          "InvalidAccessKeyId", "SignatureDoesNotMatch"};
    int64_t theirs_us = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_keys); i++)
        if (df_streq(f->code, of_keys[i]))
            return df_aws_credentials_refused(s->credentials, keys);
    if (df_streq(f->code, "AuthorizationHeaderMalformed") && s->other_region)
        return !__atomic_exchange_n(&s->is_elsewhere, true, __ATOMIC_RELAXED);
    if (!df_streq(f->code, "RequestTimeTooSkewed") || df_http_time(res, &theirs_us) < 0)
        return false;
    __atomic_store_n(&s->skew_us, theirs_us - df_real_us(), __ATOMIC_RELAXED);
    return true;
}

static int send_on(struct s3 *s, struct df_http *h, const struct call *c,
                   struct df_http_response *ret, struct df_err *err)
{
    for (int i = 0;; i++) {
        DF_AWS_KEYS keys = {0};
        DF_HTTP_RESPONSE struct df_http_response res = {0};
        struct fault fault = {{0}, {0}, {0}};
        const struct df_xml_sink sink = {take_fault, &fault};
        if (df_aws_credentials_get(s->credentials, &keys, err) < 0 ||
            send_signed(s, h, &keys, c, &res, err) < 0)
            return -1;
        if (res.status >= 200 && res.status < 300) {
            *ret = res;
            res = (struct df_http_response){0};
            return 0;
        }
        /* Not XML: some proxy's page. The status has to do. */
        (void)!df_xml_read(df_buf_str(&res.body), res.body.len, &sink, NULL);
        if (i || !may_be_accepted(s, &keys, &fault, &res))
            return fail_answer(s, c->verb, *c->name ? c->name : "the list", &res, &fault, err);
    }
}

static int send_call(struct s3 *s, const struct call *c, struct df_http_response *ret,
                     struct df_err *err)
{
    struct df_http *h = NULL;
    if (df_http_pool_take(s->pool, &h, err) < 0)
        return -1;
    int result = send_on(s, h, c, ret, err);
    df_http_pool_give(s->pool, h);
    return result;
}

/* ---- the calls -------------------------------------------------------------------------------- */

static int get_object(struct df_bucket *b, const char *name, struct df_buf *out,
                      struct df_bucket_version *ret_version, struct df_err *err)
{
    const struct call c = {.verb = "GET", .name = name, .max_response = out->max, .out = out};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (send_call(s3_of(b), &c, &res, err) < 0 || df_buf_check(out, err) < 0)
        return -1;
    return df_driver_set_version(b, name, res.etag, ret_version, err);
}

static int save_object(struct df_bucket *b, const char *name, int fd, int64_t max,
                       struct df_err *err)
{
    struct df_driver_file file;
    const struct call c = {.verb = "GET", .name = name, .file = &file};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_driver_file_begin(&file, fd, max, err) < 0 || send_call(s3_of(b), &c, &res, err) < 0)
        return -1;
    return df_driver_file_end(&file, err);
}

static int put_object(struct df_bucket *b, const char *name, const void *bytes, size_t n,
                      const struct df_bucket_version *version, struct df_err *err)
{
    const struct call c = {.verb = "PUT", .name = name, .body = bytes, .n = n, .version = version};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(s3_of(b), &c, &res, err);
}

static int remove_object(struct df_bucket *b, const char *name,
                         const struct df_bucket_version *version, struct df_err *err)
{
    const struct call c = {.verb = "DELETE", .name = name, .version = version};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(s3_of(b), &c, &res, err);
}

/* An object of a page, and what the page says of the next one. */
struct page {
    struct s3 *s;
    const struct df_bucket_sink *sink;
    char key[DF_LIMIT_BUCKET_NAME];
    int64_t size, made_us;
    bool more;
    char *next; /* owned */
};

#define LIST "ListBucketResult/"

static int give_object(struct page *p, struct df_err *err)
{
    const char *name = df_driver_own_name(p->key, p->s->prefix);
    return name ? p->sink->item(p->sink->arg, name, p->size, p->made_us, err) : 0;
}

static int take_listed(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct page *p = arg;
    if (df_streq(path, LIST "Contents/Key"))
        (void)snprintf(p->key, sizeof(p->key), "%s", strlen(text) < sizeof(p->key) ? text : "");
    else if (df_streq(path, LIST "Contents/Size"))
        return df_parse_i64(text, 0, INT64_MAX, &p->size, err);
    else if (df_streq(path, LIST "Contents/LastModified"))
        return df_time_parse(text, &p->made_us, err);
    else if (df_streq(path, LIST "Contents"))
        return give_object(p, err);
    else if (df_streq(path, LIST "IsTruncated"))
        p->more = df_streq(text, "true");
    else if (df_streq(path, LIST "NextContinuationToken"))
        return df_str_set(&p->next, text, err);
    return 0;
}

static char *list_query(struct s3 *s, const char *prefix, const char *after)
{
    DF_FREE char *whole = df_strf("%s%s", s->prefix, prefix);
    DF_FREE char *escaped = whole ? df_url_escape(whole) : NULL;
    DF_FREE char *token = after ? df_url_escape(after) : NULL;
    if (!escaped || (after && !token))
        return NULL;
    return df_strf("%s%s%slist-type=2&prefix=%s", token ? "continuation-token=" : "",
                   token ? token : "", token ? "&" : "", escaped);
}

static int list_objects(struct df_bucket *b, const char *prefix, char **after,
                        const struct df_bucket_sink *sink, struct df_err *err)
{
    struct s3 *s = s3_of(b);
    DF_FREE char *query = list_query(s, prefix, *after);
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct page p = {.s = s, .sink = sink};
    const struct df_xml_sink elements = {take_listed, &p};
    const struct call c = {.verb = "GET", .name = "", .query = query};
    if (!query)
        return df_fail_oom(err);
    if (send_call(s, &c, &res, err) < 0)
        return -1;
    int result = df_xml_read(df_buf_str(&res.body), res.body.len, &elements, err);
    if (result == 0 && p.more && !p.next)
        result = df_fail(err, DF_ERR_SYSTEM, "list %s: more, but not where it goes on", b->place);
    if (result == 0) {
        free(*after);
        *after = p.more ? DF_TAKE(p.next) : NULL;
    }
    free(p.next);
    return result;
}

/* ---- versions of an object ------------------------------------------------------------------- */

/* The version that is being read, of an object with this name. */
struct kept_page {
    const struct df_bucket_kept_sink *sink;
    const char *name;
    bool is_ours;
    char id[DF_LIMIT_OBJECT_VERSION + 1];
    struct df_bucket_kept kept;
};

#define VERSION "ListVersionsResult/Version"

/* The prefix of the list is the whole name, but others may begin with it. */
static int give_kept(struct kept_page *p, struct df_err *err)
{
    p->kept.id = p->id;
    int result = p->is_ours && *p->id ? p->sink->item(p->sink->arg, &p->kept, err) : 0;
    p->is_ours = false;
    p->kept = (struct df_bucket_kept){0};
    p->id[0] = '\0';
    return result;
}

static int take_kept(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct kept_page *p = arg;
    if (df_streq(path, VERSION "/Key"))
        p->is_ours = df_streq(text, p->name);
    else if (df_streq(path, VERSION "/VersionId"))
        (void)snprintf(p->id, sizeof(p->id), "%s", strlen(text) < sizeof(p->id) ? text : "");
    else if (df_streq(path, VERSION "/Size"))
        return df_parse_i64(text, 0, INT64_MAX, &p->kept.size, err);
    else if (df_streq(path, VERSION "/LastModified"))
        return df_time_parse(text, &p->kept.made_us, err);
    else if (df_streq(path, VERSION))
        return give_kept(p, err);
    return 0;
}

/* One page is enough: the list is in the order of names, and this one comes before all that begin
 * with it; its versions are in the order of time, the newest first. */
static int list_kept(struct df_bucket *b, const char *name, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    struct s3 *s = s3_of(b);
    DF_FREE char *whole = df_strf("%s%s", s->prefix, name);
    DF_FREE char *escaped = whole ? df_url_escape(whole) : NULL;
    DF_FREE char *query =
        escaped ? df_strf("max-keys=%zu&prefix=%s&versions=", max, escaped) : NULL;
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct kept_page p = {.sink = sink, .name = whole};
    const struct df_xml_sink elements = {take_kept, &p};
    const struct call c = {.verb = "GET", .name = "", .query = query};
    if (!query)
        return df_fail_oom(err);
    if (send_call(s, &c, &res, err) < 0)
        return -1;
    return df_xml_read(df_buf_str(&res.body), res.body.len, &elements, err);
}

static int get_kept(struct df_bucket *b, const char *name, const char *id, size_t n,
                    struct df_buf *out, struct df_err *err)
{
    DF_FREE char *escaped = df_url_escape(id);
    DF_FREE char *query = escaped ? df_strf("versionId=%s", escaped) : NULL;
    const struct call c = {.verb = "GET",
                           .name = name,
                           .query = query,
                           .first = n,
                           .max_response = out->max,
                           .out = out};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (!query)
        return df_fail_oom(err);
    return send_call(s3_of(b), &c, &res, err) < 0 ? -1 : df_buf_check(out, err);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void close_bucket(struct df_bucket *b)
{
    struct s3 *s = s3_of(b);
    df_http_pool_free(s->pool);
    df_aws_credentials_free(s->credentials);
    free(s->bucket.place);
    free(s->url);
    free(s->prefix);
    free(s->region);
    free(s->other_region);
    free(s->ca_file);
    free(s->ca_pem);
    free(s);
}

static const struct df_bucket_ops ops = {
    .close = close_bucket,
    .get = get_object,
    .save = save_object,
    .put = put_object,
    .remove = remove_object,
    .list = list_objects,
    .list_kept = list_kept,
    .get_kept = get_kept,
};

/* The bucket becomes a part of a URL that is signed as it stands. */
static bool is_bucket_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return n >= 3 && n <= 63 && !s[n] && s[0] != '.' && s[0] != '-' && !strstr(s, "..");
}

static char *bucket_url(const struct df_s3_options *o)
{
    DF_FREE char *aws = df_strf("https://s3.%s.amazonaws.com", o->region);
    const char *endpoint = df_str_empty(o->endpoint) ? aws : o->endpoint;
    size_t n = endpoint ? strlen(endpoint) : 0;
    const char *host = endpoint ? strstr(endpoint, "://") : NULL;
    if (!host)
        return NULL;
    host += 3;
    n -= endpoint[n - 1] == '/';
    return o->path_style ? df_strf("%.*s/%s", (int)n, endpoint, o->bucket)
                         : df_strf("%.*s%s.%.*s", (int)(host - endpoint), endpoint, o->bucket,
                                   (int)(endpoint + n - host), host);
}

/* True for "https://10.0.0.1:9000" and "https://[::1]:9000": nothing can stand before such a host. */
static bool is_address(const char *endpoint)
{
    DF_FREE char *host = df_str_empty(endpoint) ? NULL : df_url_host(endpoint);
    unsigned char bytes[sizeof(struct in6_addr)];
    return host && (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1);
}

static int check_endpoint(const struct df_s3_options *o, struct df_err *err)
{
    if (df_driver_check_endpoint(o->endpoint, err) < 0)
        return df_driver_at(o->names_keys, "blobs.s3.endpoint", err);
    if (o->path_style || !is_address(o->endpoint))
        return 0;
    (void)df_fail(err, DF_ERR_USER,
                  "must be true, because the host of %s is an address, which cannot have the name "
                  "of the bucket before it",
                  o->endpoint);
    return o->names_keys ? df_err_wrap(err, "blobs.s3.pathStyle")
                         : df_err_wrap(err, "the path style");
}

static int check_options(const struct df_s3_options *o, struct df_err *err)
{
    if (!is_bucket_name(o->bucket)) {
        (void)df_fail(err, DF_ERR_USER, "\"%s\" is not the name of a bucket", o->bucket);
        return df_driver_at(o->names_keys, "blobs.location", err);
    }
    if (!df_str_empty(o->prefix) && df_driver_check_prefix(o->prefix, err) < 0)
        return df_driver_at(o->names_keys, "blobs.location", err);
    const char *regions[] = {o->region, o->other_region ? o->other_region : o->region};
    for (size_t i = 0; i < DF_ARRAY_SIZE(regions); i++)
        if (!df_is_dns_label(regions[i])) {
            (void)df_fail(err, DF_ERR_USER, "\"%s\" is not a region", regions[i]);
            return df_driver_at(o->names_keys, "blobs.s3.region", err);
        }
    return check_endpoint(o, err);
}

static int fill(struct s3 *s, const struct df_s3_options *o, struct df_err *err)
{
    bool whole = df_str_empty(o->prefix);
    s->bucket.ops = &ops;
    s->names_keys = o->names_keys;
    s->in_host = !o->path_style && !df_str_empty(o->endpoint);
    s->bucket.place = df_strf("s3://%s%s%s", o->bucket, whole ? "" : "/", whole ? "" : o->prefix);
    s->url = bucket_url(o);
    s->prefix = whole ? strdup("") : df_strf("%s/", o->prefix);
    s->region = strdup(o->region);
    s->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
    if (!s->bucket.place || !s->url || !s->prefix || !s->region || (o->ca_file && !s->ca_file))
        return df_fail_oom(err);
    if (df_str_set(&s->ca_pem, o->ca_pem, err) < 0 ||
        df_str_set(&s->other_region, o->other_region, err) < 0)
        return -1;
    const struct df_http_options http = {
        .ca_file = s->ca_file, .ca_pem = s->ca_pem, .piece = DF_DRIVER_PIECE};
    if (o->keys ? df_aws_credentials_given(o->keys, &s->credentials, err) < 0
                : df_aws_credentials_new(o->region, &s->credentials, err) < 0)
        return -1;
    return df_http_pool_new(&http, &s->pool, err);
}

int df_s3_bucket_new(const struct df_s3_options *o, struct df_bucket **ret, struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct s3 *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    if (fill(s, o, err) < 0) {
        close_bucket(&s->bucket);
        return df_driver_at(o->names_keys, "blobs.location", err);
    }
    *ret = &s->bucket;
    return 0;
}
