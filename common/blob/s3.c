/*
 * The protocol of a driver (driver.h) that speaks S3. First failures, then an attempt, lists,
 * versions of an object, opening.
 */
#include "common/blob/s3.h"

#include <arpa/inet.h>
#include <time.h>

#include "common/aws/credentials.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/blob/driver.h"
#include "common/blob/driver_xml.h"

struct s3 {
    struct df_driver driver;
    char *region;
    char *other_region; /* or NULL */
    bool is_elsewhere;  /* atomic: the other region is the right one */
    struct df_aws_credentials *credentials;
    bool in_host;  /* the bucket stands before the host of an endpoint that is not AWS's */
    bool answered; /* atomic: somebody did, so the URL is good */
};

static struct s3 *s3_of(const struct df_driver *d)
{
    return (struct s3 *)(uintptr_t)d; /* its first member */
}

static const char *region_of(const struct s3 *s)
{
    return __atomic_load_n(&s->is_elsewhere, __ATOMIC_RELAXED) ? s->other_region : s->region;
}

/* ---- failures -------------------------------------------------------------------------------- */

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

static const struct meaning *meaning_of(const struct df_driver_fault *f)
{
    static const struct meaning none = {""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(meanings); i++)
        if (df_streq(meanings[i].code, f->code))
            return &meanings[i];
    return &none;
}

static enum df_err_class class_of(const struct df_driver_call *c, const struct df_driver_fault *f)
{
    const struct meaning *m = meaning_of(f);
    (void)c;
    if (m->cls)
        return m->cls;
    /* 404 of somebody on the way: the store names what is not there. */
    if (f->status == 404 || f->status == 409)
        return DF_ERR_RETRY;
    return df_driver_class_of(f->status);
}

static void add_region(const struct s3 *s, const struct meaning *m, const char *theirs,
                       struct df_buf *out)
{
    const char *key = s->driver.names_keys ? "blobs.s3.region" : "the region";
    if (*theirs && !df_streq(theirs, region_of(s)))
        (void)df_buf_addf(out, "; set %s to %s", key, theirs);
    else if (m->of_region)
        (void)df_buf_addf(out, "; set %s, which is %s, to that of the bucket", key, region_of(s));
}

static void add_way_out(const struct df_driver_attempt *a, struct df_buf *out)
{
    const struct s3 *s = s3_of(a->driver);
    const struct meaning *m = meaning_of(&a->fault);
    bool names_keys = s->driver.names_keys;
    add_region(s, m, *a->fault.region ? a->fault.region : a->res.bucket_region, out);
    if (m->of_keys) {
        (void)df_buf_adds(out, "; the keys come from ");
        df_aws_credentials_source(s->credentials, out);
    }
    if (names_keys && m->way_out)
        (void)df_buf_addf(out, "; %s", m->way_out);
    if (names_keys && s->in_host && df_streq(m->code, "NoSuchBucket"))
        (void)df_buf_adds(out, "; " IN_PATH);
}

/* No answer. A host with the bucket before it may have no address, or no certificate. */
static int fail_way(const struct s3 *s, struct df_err *err)
{
    bool answered = __atomic_load_n(&s->answered, __ATOMIC_RELAXED);
    if (err && s->driver.names_keys && s->in_host && !answered) {
        size_t n = strlen(err->message);
        (void)snprintf(err->message + n, sizeof(err->message) - n, "; %s", IN_PATH);
    }
    return -1;
}

/* ---- an attempt ---- */

/* A clock that is wrong by more than a quarter of an hour would make every request invalid. */
static void add_date(struct df_driver_attempt *a)
{
    time_t now = (time_t)((df_real_us() + a->skew_us) / 1000000);
    char date[sizeof("20261121T085001Z")];
    struct tm tm;
    if (a->skew_us && gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm))
        (void)df_strs_addf(&a->headers, "X-Amz-Date: %s", date);
}

static int send_signed(struct df_driver_attempt *a, const struct df_aws_keys *keys,
                       struct df_err *err)
{
    struct s3 *s = s3_of(a->driver);
    const struct df_http_aws aws = {keys->access_key, keys->secret_key, keys->token, region_of(s),
                                    "s3"};
    if (df_http_set_aws(a->http, &aws, err) < 0)
        return -1;
    add_date(a);
    if (df_driver_exchange(a, err) < 0)
        return fail_way(s, err);
    __atomic_store_n(&s->answered, true, __ATOMIC_RELAXED);
    return 0;
}

/* True if a second request with newer credentials, the other region or the store's time may be
 * accepted. */
static bool may_repeat(struct df_driver_attempt *a, const struct df_aws_keys *keys)
{
    static const char *const of_keys[] = {"ExpiredToken", "TokenRefreshRequired", "InvalidToken",
                                          "InvalidAccessKeyId", "SignatureDoesNotMatch"};
    struct s3 *s = s3_of(a->driver);
    const char *code = a->fault.code;
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_keys); i++)
        if (df_streq(code, of_keys[i]))
            return df_aws_credentials_refused(s->credentials, keys);
    if (df_streq(code, "AuthorizationHeaderMalformed") && s->other_region)
        return !__atomic_exchange_n(&s->is_elsewhere, true, __ATOMIC_RELAXED);
    return df_streq(code, "RequestTimeTooSkewed") && df_driver_take_time(a);
}

static int attempt(struct df_driver_attempt *a, struct df_err *err)
{
    DF_AWS_KEYS keys = {0};
    if (df_aws_credentials_get(s3_of(a->driver)->credentials, &keys, err) < 0 ||
        send_signed(a, &keys, err) < 0)
        return -1;
    a->may_repeat = df_driver_was_refused(a) && may_repeat(a, &keys);
    return 0;
}

/* ---- lists ---- */

static void ask_for_page(struct df_driver_call *c, const char *prefix, const char *after)
{
    if (after)
        df_driver_add_parameter(c, "continuation-token", after);
    df_driver_add_parameter(c, "list-type", "2");
    df_driver_add_parameter(c, "prefix", prefix);
}

#define OBJECT "ListBucketResult/Contents"

static int read_page(struct df_driver_page *p, const struct df_buf *body, struct df_err *err)
{
    static const struct df_driver_xml_words words = {
        .item = OBJECT,
        .name = OBJECT "/Key",
        .size = OBJECT "/Size",
        .made = OBJECT "/LastModified",
        .more = "ListBucketResult/IsTruncated",
        .next = "ListBucketResult/NextContinuationToken",
        .read_time = df_time_parse,
    };
    return df_driver_xml_page(p, &words, body, err);
}

/* ---- versions of an object ------------------------------------------------------------------- */

#define VERSION "ListVersionsResult/Version"

struct kept_list {
    const char *name; /* with the prefix */
    const struct df_bucket_kept_sink *sink;
};

/* The prefix of the list is the whole name, but others may begin with it. */
static int give_kept(void *arg, const struct df_driver_xml_item *item, struct df_err *err)
{
    const struct kept_list *l = arg;
    const struct df_bucket_kept kept = {item->version, item->size, item->made_us};
    return df_streq(item->name, l->name) && *kept.id ? l->sink->item(l->sink->arg, &kept, err) : 0;
}

static int read_kept(struct kept_list *kept, const struct df_buf *body, struct df_err *err)
{
    static const struct df_driver_xml_words words = {
        .item = VERSION,
        .name = VERSION "/Key",
        .version = VERSION "/VersionId",
        .size = VERSION "/Size",
        .made = VERSION "/LastModified",
        .read_time = df_time_parse,
    };
    struct df_driver_xml_list l = {.words = &words, .give = give_kept, .arg = kept};
    return df_driver_xml_read(&l, body, err);
}

/* One page is enough: the list is in the order of names, and this one comes before all that begin
 * with it; its versions are in the order of time, the newest first. */
static int list_kept(struct df_driver *d, const char *whole, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    char most[24];
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct kept_list kept = {whole, sink};
    struct df_driver_call c = {.op = DF_DRIVER_LIST, .name = ""};
    (void)snprintf(most, sizeof(most), "%zu", max);
    df_driver_add_parameter(&c, "max-keys", most);
    df_driver_add_parameter(&c, "prefix", whole);
    df_driver_add_parameter(&c, "versions", "");
    return df_driver_send(d, &c, &res, err) < 0 ? -1 : read_kept(&kept, &res.body, err);
}

/* ---- opening ---- */

static void free_s3(struct df_driver *d)
{
    struct s3 *s = s3_of(d);
    df_aws_credentials_free(s->credentials);
    free(s->region);
    free(s->other_region);
}

static const struct df_driver_protocol protocol = {
    .verbs = {[DF_DRIVER_GET] = {"GET", "GET"},
              [DF_DRIVER_PUT] = {"PUT", "PUT"},
              [DF_DRIVER_REMOVE] = {"DELETE", "DELETE"},
              [DF_DRIVER_LIST] = {"GET", "GET the list"}},
    .attempt = attempt,
    .read_fault = df_driver_xml_fault,
    .class_of = class_of,
    .add_way_out = add_way_out,
    .ask_for_page = ask_for_page,
    .read_page = read_page,
    .list_kept = list_kept,
    .version_parameter = "versionId",
    .free = free_s3,
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

/* True for "https://10.0.0.1:9000" and "https://[::1]:9000": nothing can stand before such a
 * host. */
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
    const struct df_driver_options options = {.protocol = &protocol,
                                              .bucket = df_strf("s3://%s", o->bucket),
                                              .url = bucket_url(o),
                                              .prefix = o->prefix,
                                              .ca_file = o->ca_file,
                                              .ca_pem = o->ca_pem,
                                              .names_keys = o->names_keys};
    s->in_host = !o->path_style && !df_str_empty(o->endpoint);
    if (df_driver_init(&s->driver, &options, err) < 0 ||
        df_str_set(&s->region, o->region, err) < 0 ||
        df_str_set(&s->other_region, o->other_region, err) < 0)
        return -1;
    return o->keys ? df_aws_credentials_given(o->keys, &s->credentials, err)
                   : df_aws_credentials_new(o->region, &s->credentials, err);
}

int df_s3_bucket_new(const struct df_s3_options *o, struct df_bucket **ret, struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct s3 *s = calloc(1, sizeof(*s));
    return s ? df_driver_opened(&s->driver, fill(s, o, err), ret, err) : df_fail_oom(err);
}
