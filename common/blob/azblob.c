/*
 * The driver of a bucket (bucket.h) that speaks the REST API of Azure Blob Storage. Every object is
 * one block blob; a version is its ETag. First failures, then the request, the calls, opening.
 */
#include "common/blob/azblob.h"

#include <time.h>

#include "common/azure/credentials.h"
#include "common/azure/shared_key.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/blob/backend.h"
#include "common/blob/driver.h"
#include "common/crypto/crypto.h"
#include "common/http/pool.h"
#include "common/xml/xml.h"

#define API_VERSION "2021-12-02"
#define CONTENT_TYPE "application/octet-stream"
#define NO_CONTAINER "ContainerNotFound"

enum { IDLE_MS = 30000, SKEW_S = 60 };

struct azblob {
    struct df_bucket bucket;
    char *account;
    char *url;     /* of the container, without a slash at the end */
    char *prefix;  /* with a slash at the end, or "" */
    char *ca_file; /* or NULL, as the next */
    char *ca_pem;
    bool makes_container, names_keys; /* as of the options */
    struct df_azure_credentials *credentials;
    struct df_http_pool *pool;
    int64_t skew_us; /* atomic: what the store's clock is ahead of ours, once that mattered */
};

static struct azblob *azblob_of(struct df_bucket *b)
{
    return (struct azblob *)b; /* its first member */
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What the body of an error says. */
struct fault {
    char code[64], message[256];
};

/* Lines behind the first one have the time and an id. */
static int take_fault(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct fault *f = arg;
    (void)err;
    if (df_streq(path, "Error/Code"))
        (void)snprintf(f->code, sizeof(f->code), "%s", text);
    else if (df_streq(path, "Error/Message"))
        (void)snprintf(f->message, sizeof(f->message), "%.*s", (int)strcspn(text, "\r\n"), text);
    return 0;
}

/* Codes whose status does not say what they mean here. A conflict ends by itself (a copy, a
 * rehydration), unless somebody has to act. */
static const struct {
    const char *code;
    enum df_err_class cls;
} classes[] = {
    {"BlobNotFound", DF_ERR_NOT_FOUND},
    {NO_CONTAINER, DF_ERR_USER},
    {"ContainerAlreadyExists", DF_ERR_CONFLICT},
    {"ContainerBeingDeleted", DF_ERR_USER}, /* and not found a minute later */
    {"ContainerDisabled", DF_ERR_USER},
    {"SnapshotsPresent", DF_ERR_USER},
    {"BlobArchived", DF_ERR_USER},
    {"InvalidBlobType", DF_ERR_USER},      /* a page or append blob has the name */
    {"ResourceTypeMismatch", DF_ERR_USER}, /* a directory has it */
    {"BlobImmutableDueToPolicy", DF_ERR_DENIED},
    {"AccountIsDisabled", DF_ERR_DENIED},
    {"BlobAlreadyExists", DF_ERR_CONFLICT},
    {"LeaseIdMissing", DF_ERR_DENIED}, /* somebody holds the blob */
    {"Md5Mismatch", DF_ERR_RETRY},     /* a byte was changed on the way */
};

static enum df_err_class class_of(const struct fault *f, int status)
{
    if (df_streq(f->code, "InvalidOperation") && strcasestr(f->message, "MD5")) /* of Azurite */
        return DF_ERR_RETRY;
    for (size_t i = 0; i < DF_ARRAY_SIZE(classes); i++)
        if (df_streq(classes[i].code, f->code))
            return classes[i].cls;
    /* 404 of somebody on the way: the store names what is not there. */
    if (status == 404 || status == 408 || status == 409)
        return DF_ERR_RETRY;
    return df_driver_class_of(status);
}

static const char *way_out(const struct azblob *a, const struct fault *f, int status)
{
    if (!a->names_keys)
        return "";
    if (df_streq(f->code, NO_CONTAINER))
        return "; name a container that exists in blobs.location";
    if (df_streq(f->code, "AuthenticationFailed"))
        return "; correct the key, signature or identity of the environment (AZURE_*)";
    return status == 403 ? "; the identity needs the role Storage Blob Data Contributor on the "
                           "container, a shared access signature the permissions "
                           "read, add, create, write, delete and list"
                         : "";
}

static int fail_answer(struct azblob *a, const char *verb, const char *name,
                       const struct df_http_response *res, const struct fault *f,
                       struct df_err *err)
{
    (void)df_fail(err, class_of(f, res->status), "%s %s of %s: HTTP %d%s%s%s%s%s", verb, name,
                  a->bucket.place, res->status, *f->code ? " " : "", f->code,
                  *f->message ? ": " : "", f->message, way_out(a, f, res->status));
    if (err && res->retry_after_s > 0)
        err->retry_after_s = res->retry_after_s;
    return -1;
}

/* ---- the request ------------------------------------------------------------------------------ */

enum { PARAMETERS = 5 };

struct call {
    const char *verb;
    const char *name;                            /* of an object; "": the container itself */
    struct df_azure_parameter query[PARAMETERS]; /* sorted by name */
    size_t query_len;
    const void *body;
    size_t n;
    const struct df_bucket_version *version; /* NULL: any */
    size_t max_response;
    struct df_buf *out;          /* for the content, or NULL */
    struct df_driver_file *file; /* the same */
    bool *no_container;          /* set if that is why it failed; or NULL */
};

/* What is said of one request, twice: in its headers and in what is signed. */
struct head {
    char date[40];
    char md5[32];            /* base64; "" without a body */
    const char *if_match;    /* or "" */
    const char *if_none;     /* or "" */
    struct df_strs headers;  /* owned */
    struct df_buf canonical; /* owned: the x-ms- headers as they are signed */
};

static void head_free(struct head *d)
{
    df_strs_free(&d->headers);
    df_buf_free(&d->canonical);
}

/* A clock that is wrong by more than a quarter of an hour would make every request invalid. */
static void print_date(struct azblob *a, char *out, size_t size)
{
    int64_t skew_us = __atomic_load_n(&a->skew_us, __ATOMIC_RELAXED);
    time_t now = (time_t)((df_real_us() + skew_us) / 1000000);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(out, size, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        *out = '\0';
}

static int print_md5(const struct call *c, char out[32], struct df_err *err)
{
    unsigned char digest[DF_MD5_LEN];
    DF_BUF struct df_buf text = DF_BUF_INIT(31);
    *out = '\0';
    if (!c->body)
        return 0;
    if (df_md5(c->body, c->n, digest, err) < 0 ||
        df_base64_encode(digest, sizeof(digest), false, &text, err) < 0)
        return -1;
    (void)snprintf(out, 32, "%s", df_buf_str(&text));
    return 0;
}

static int make_head(struct azblob *a, const struct call *c, struct head *d, struct df_err *err)
{
    const struct df_bucket_version *v = c->version;
    d->canonical = DF_BUF_INIT(1024);
    d->if_match = v && *v->text ? v->text : "";
    d->if_none = v && !*v->text ? "*" : "";
    print_date(a, d->date, sizeof(d->date));
    if (print_md5(c, d->md5, err) < 0)
        return -1;
    if (c->body)
        (void)df_strs_add(&d->headers, "x-ms-blob-type: BlockBlob");
    else if (df_streq(c->verb, "PUT"))
        (void)df_strs_add(&d->headers, "Content-Length: 0");
    (void)df_strs_addf(&d->headers, "x-ms-date: %s", d->date);
    (void)df_strs_add(&d->headers, "x-ms-version: " API_VERSION);
    (void)df_buf_addf(&d->canonical, "%sx-ms-date:%s\nx-ms-version:" API_VERSION "\n",
                      c->body ? "x-ms-blob-type:BlockBlob\n" : "", d->date);
    if (*d->md5)
        (void)df_strs_addf(&d->headers, "Content-MD5: %s", d->md5);
    if (*d->if_match)
        (void)df_strs_addf(&d->headers, "If-Match: %s", d->if_match);
    if (*d->if_none)
        (void)df_strs_addf(&d->headers, "If-None-Match: %s", d->if_none);
    return df_strs_check(&d->headers, err) < 0 ? -1 : df_buf_check(&d->canonical, err);
}

/* sas: the query of a shared access signature, or "". */
static int print_url(const struct azblob *a, const struct call *c, const char *sas,
                     struct df_buf *out, struct df_err *err)
{
    (void)df_buf_addf(out, "%s%s%s%s", a->url, *c->name ? "/" : "", *c->name ? a->prefix : "",
                      c->name);
    for (size_t i = 0; i < c->query_len; i++) {
        DF_FREE char *value = df_url_escape(c->query[i].value);
        if (!value)
            return df_fail_oom(err);
        (void)df_buf_addf(out, "%s%s=%s", i ? "&" : "?", c->query[i].name, value);
    }
    if (*sas)
        (void)df_buf_addf(out, "%s%s", c->query_len ? "&" : "?", sas);
    return df_buf_check(out, err);
}

static int sign(const struct azblob *a, const struct call *c, const char *key, struct head *d,
                struct df_err *err)
{
    DF_FREE char *path = df_strf("%s%s%s%s", strchr(strstr(a->url, "://") + 3, '/'),
                                 *c->name ? "/" : "", *c->name ? a->prefix : "", c->name);
    DF_BUF struct df_buf value = DF_BUF_INIT(256);
    const struct df_azure_request r = {.verb = c->verb,
                                       .content_length = c->n,
                                       .content_md5 = d->md5,
                                       .content_type = c->body ? CONTENT_TYPE : "",
                                       .if_match = d->if_match,
                                       .if_none_match = d->if_none,
                                       .headers = df_buf_str(&d->canonical),
                                       .path = path,
                                       .query = c->query,
                                       .query_len = c->query_len};
    if (!path)
        return df_fail_oom(err);
    if (df_azure_sign(&r, a->account, key, &value, err) < 0)
        return -1;
    (void)df_strs_addf(&d->headers, "Authorization: %s", df_buf_str(&value));
    return df_strs_check(&d->headers, err);
}

static int send_granted(struct azblob *a, struct df_http *h, const struct df_azure_grant *g,
                        const struct call *c, struct df_http_response *res, struct df_err *err)
{
    DF_CLEANUP(head_free) struct head d = {{0}};
    DF_CLEANUP(df_buf_wipe) struct df_buf url = DF_BUF_INIT(DF_LIMIT_URL);
    if (*c->name && !df_blob_path_is_good(c->name))
        return df_fail(err, DF_ERR_BUG, "\"%s\" is not the name of an object", c->name);
    if (make_head(a, c, &d, err) < 0 ||
        print_url(a, c, g->kind == DF_AZURE_SAS ? g->text : "", &url, err) < 0 ||
        (g->kind == DF_AZURE_KEY && sign(a, c, g->text, &d, err) < 0) ||
        (g->kind == DF_AZURE_TOKEN && df_http_set_bearer(h, g->text, err) < 0))
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST(c->verb, df_buf_str(&url));
    req.headers = &d.headers;
    req.content_type = CONTENT_TYPE;
    req.body = c->body;
    req.body_len = c->n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.max_response = c->max_response;
    req.on_data = c->file ? df_driver_file_take : c->out ? df_bucket_take : NULL;
    req.arg = c->file ? (void *)c->file : c->out;
    return df_http_send(h, &req, res, err);
}

/* True if a second request with a newer token, or the store's time, may be accepted. */
static bool may_be_accepted(struct azblob *a, const struct df_azure_grant *g,
                            const struct df_http_response *res)
{
    int64_t theirs_us = 0;
    if (g->kind == DF_AZURE_TOKEN && res->status == 401) {
        df_azure_credentials_refused(a->credentials, g);
        return true;
    }
    if (g->kind != DF_AZURE_KEY || res->status != 403 || df_http_time(res, &theirs_us) < 0)
        return false;
    int64_t skew_us = theirs_us - df_real_us();
    int64_t known_us = __atomic_exchange_n(&a->skew_us, skew_us, __ATOMIC_RELAXED);
    return llabs(skew_us - known_us) > SKEW_S * INT64_C(1000000);
}

static int send_on(struct azblob *a, struct df_http *h, const struct call *c,
                   struct df_http_response *ret, struct df_err *err)
{
    for (int i = 0;; i++) {
        DF_AZURE_GRANT grant = {0};
        DF_HTTP_RESPONSE struct df_http_response res = {0};
        struct fault fault = {{0}, {0}};
        const struct df_xml_sink sink = {take_fault, &fault};
        if (df_azure_credentials_get(a->credentials, &grant, err) < 0 ||
            send_granted(a, h, &grant, c, &res, err) < 0)
            return -1;
        if (res.status >= 200 && res.status < 300) {
            *ret = res;
            res = (struct df_http_response){0};
            return 0;
        }
        /* Not XML: some proxy's page. The status has to do. */
        (void)!df_xml_read(df_buf_str(&res.body), res.body.len, &sink, NULL);
        if (c->no_container)
            *c->no_container = df_streq(fault.code, NO_CONTAINER);
        if (i || !may_be_accepted(a, &grant, &res))
            return fail_answer(a, c->verb, *c->name ? c->name : "the list", &res, &fault, err);
    }
}

static int send_call(struct azblob *a, const struct call *c, struct df_http_response *ret,
                     struct df_err *err)
{
    struct df_http *h = NULL;
    if (df_http_pool_take(a->pool, &h, err) < 0)
        return -1;
    int result = send_on(a, h, c, ret, err);
    df_http_pool_give(a->pool, h);
    return result;
}

/* ---- the calls -------------------------------------------------------------------------------- */

static int get_object(struct df_bucket *b, const char *name, struct df_buf *out,
                      struct df_bucket_version *ret_version, struct df_err *err)
{
    const struct call c = {.verb = "GET", .name = name, .max_response = out->max, .out = out};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (send_call(azblob_of(b), &c, &res, err) < 0 || df_buf_check(out, err) < 0)
        return -1;
    return df_driver_set_version(b, name, res.etag, ret_version, err);
}

static int save_object(struct df_bucket *b, const char *name, int fd, int64_t max,
                       struct df_err *err)
{
    struct df_driver_file file;
    const struct call c = {.verb = "GET", .name = name, .file = &file};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_driver_file_begin(&file, fd, max, err) < 0 || send_call(azblob_of(b), &c, &res, err) < 0)
        return -1;
    return df_driver_file_end(&file, err);
}

/* Another writer may be making it, too. */
static int make_container(struct azblob *a, struct df_err *err)
{
    const struct call c = {
        .verb = "PUT", .name = "", .query = {{"restype", "container"}}, .query_len = 1};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    if (send_call(a, &c, &res, &why) < 0 && why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    return 0;
}

static int put_object(struct df_bucket *b, const char *name, const void *bytes, size_t n,
                      const struct df_bucket_version *version, struct df_err *err)
{
    struct azblob *a = azblob_of(b);
    bool no_container = false;
    const struct call c = {.verb = "PUT",
                           .name = name,
                           .body = bytes,
                           .n = n,
                           .version = version,
                           .no_container = &no_container};
    struct df_err why = {0};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (send_call(a, &c, &res, &why) == 0)
        return 0;
    if (!a->makes_container || !no_container)
        return df_err_pass(err, &why);
    return make_container(a, err) < 0 ? -1 : send_call(a, &c, &res, err);
}

static int remove_object(struct df_bucket *b, const char *name,
                         const struct df_bucket_version *version, struct df_err *err)
{
    const struct call c = {.verb = "DELETE", .name = name, .version = version};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(azblob_of(b), &c, &res, err);
}

/* An object of a page, and where the next page begins. */
struct page {
    struct azblob *a;
    const struct df_bucket_sink *sink;
    char name[DF_LIMIT_BUCKET_NAME];
    int64_t size, made_us;
    char *next; /* owned */
};

#define LIST "EnumerationResults/"
#define BLOB LIST "Blobs/Blob"

static int give_object(struct page *p, struct df_err *err)
{
    const char *name = df_driver_own_name(p->name, p->a->prefix);
    return name ? p->sink->item(p->sink->arg, name, p->size, p->made_us, err) : 0;
}

static int take_listed(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct page *p = arg;
    if (df_streq(path, BLOB "/Name"))
        (void)snprintf(p->name, sizeof(p->name), "%s", strlen(text) < sizeof(p->name) ? text : "");
    else if (df_streq(path, BLOB "/Properties/Content-Length"))
        return df_parse_i64(text, 0, INT64_MAX, &p->size, err);
    else if (df_streq(path, BLOB "/Properties/Last-Modified"))
        return df_http_date(text, &p->made_us) < 0
                   ? df_fail(err, DF_ERR_SYSTEM, "Last-Modified: \"%.64s\" is not a date", text)
                   : 0;
    else if (df_streq(path, BLOB))
        return give_object(p, err);
    else if (df_streq(path, LIST "NextMarker"))
        return df_str_set(&p->next, *text ? text : NULL, err);
    return 0;
}

static int list_objects(struct df_bucket *b, const char *prefix, char **after,
                        const struct df_bucket_sink *sink, struct df_err *err)
{
    struct azblob *a = azblob_of(b);
    DF_FREE char *whole = df_strf("%s%s", a->prefix, prefix);
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct page p = {.a = a, .sink = sink};
    const struct df_xml_sink elements = {take_listed, &p};
    const struct call c = {.verb = "GET",
                           .name = "",
                           .query = {{"comp", "list"},
                                     {"marker", *after ? *after : ""},
                                     {"maxresults", "1000"},
                                     {"prefix", whole},
                                     {"restype", "container"}},
                           .query_len = PARAMETERS};
    if (!whole)
        return df_fail_oom(err);
    if (send_call(a, &c, &res, err) < 0)
        return -1;
    int result = df_xml_read(df_buf_str(&res.body), res.body.len, &elements, err);
    if (result == 0) {
        free(*after);
        *after = DF_TAKE(p.next);
    }
    free(p.next);
    return result;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void close_bucket(struct df_bucket *b)
{
    struct azblob *a = azblob_of(b);
    df_http_pool_free(a->pool);
    df_azure_credentials_free(a->credentials);
    free(a->bucket.place);
    free(a->account);
    free(a->url);
    free(a->prefix);
    free(a->ca_file);
    free(a->ca_pem);
    free(a);
}

static const struct df_bucket_ops ops = {
    .close = close_bucket,
    .get = get_object,
    .save = save_object,
    .put = put_object,
    .remove = remove_object,
    .list = list_objects,
};

/* Both become parts of a URL that is signed as it stands. */
static bool is_account_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");
    return n >= 3 && n <= 24 && !s[n];
}

static bool is_container_name(const char *s, size_t n)
{
    return n >= 3 && n <= 63 && s[0] != '-' && s[n - 1] != '-' && !memmem(s, n, "--", 2) &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static int check_place(const struct df_azblob_options *o, struct df_err *err)
{
    const char *place = o->place ? o->place : "";
    size_t n = strcspn(place, "/");
    if (!is_account_name(o->account))
        return df_fail(err, DF_ERR_USER, "\"%s\" is not the name of a storage account", o->account);
    if (!is_container_name(place, n))
        return df_fail(err, DF_ERR_USER,
                       "\"%.*s\" is not the name of a container: azblob://ACCOUNT/CONTAINER/PREFIX",
                       (int)n, place);
    return place[n] ? df_driver_check_prefix(place + n + 1, err) : 0;
}

static int check_options(const struct df_azblob_options *o, struct df_err *err)
{
    if (check_place(o, err) < 0)
        return df_driver_at(o->names_keys, "blobs.location", err);
    return df_driver_check_endpoint(o->endpoint, err) < 0
               ? df_driver_at(o->names_keys, "blobs.azblob.endpoint", err)
               : 0;
}

static int fill(struct azblob *a, const struct df_azblob_options *o, struct df_err *err)
{
    size_t n = strcspn(o->place, "/");
    DF_FREE char *cloud = df_strf("https://%s.blob.core.windows.net", o->account);
    const char *e = df_str_empty(o->endpoint) ? cloud : o->endpoint;
    if (!cloud)
        return df_fail_oom(err);
    a->bucket.ops = &ops;
    a->bucket.place = df_strf("azblob://%s/%s", o->account, o->place);
    a->account = strdup(o->account);
    a->url = df_strf("%.*s/%.*s", (int)(strlen(e) - df_ends_with(e, "/")), e, (int)n, o->place);
    a->prefix = o->place[n] ? df_strf("%s/", o->place + n + 1) : strdup("");
    if (!a->bucket.place || !a->account || !a->url || !a->prefix)
        return df_fail_oom(err);
    if (df_str_set(&a->ca_file, o->ca_file, err) < 0 ||
        df_str_set(&a->ca_pem, o->ca_pem, err) < 0 ||
        (o->key ? df_azure_credentials_given(o->key, &a->credentials, err)
                : df_azure_credentials_new(&a->credentials, err)) < 0)
        return -1;
    a->makes_container = o->makes_container;
    a->names_keys = o->names_keys;
    const struct df_http_options http = {
        .ca_file = a->ca_file, .ca_pem = a->ca_pem, .piece = DF_DRIVER_PIECE};
    return df_http_pool_new(&http, &a->pool, err);
}

int df_azblob_bucket_new(const struct df_azblob_options *o, struct df_bucket **ret,
                         struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct azblob *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    if (fill(a, o, err) < 0) {
        close_bucket(&a->bucket);
        return df_driver_at(o->names_keys, "blobs.location", err);
    }
    *ret = &a->bucket;
    return 0;
}
