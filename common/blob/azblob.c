/*
 * The protocol of a driver (driver.h) that speaks the REST API of Azure Blob Storage. Every object
 * is one block blob; a version is its ETag. First failures, then an attempt, lists, opening.
 */
#include "common/blob/azblob.h"

#include <time.h>

#include "common/azure/credentials.h"
#include "common/azure/shared_key.h"
#include "common/base/clock.h"
#include "common/blob/driver.h"
#include "common/blob/driver_xml.h"
#include "common/crypto/crypto.h"

#define API_VERSION "2021-12-02"
#define NO_CONTAINER "ContainerNotFound"

enum { SKEW_S = 60 };

struct azblob {
    struct df_driver driver;
    char *account;
    bool makes_container; /* as of the options */
    struct df_azure_credentials *credentials;
};

static struct azblob *azblob_of(const struct df_driver *d)
{
    return (struct azblob *)(uintptr_t)d; /* its first member */
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Lines behind the first one have the time and an id. */
static void read_fault(const struct df_http_response *res, struct df_driver_fault *f)
{
    df_driver_xml_fault(res, f);
    f->message[strcspn(f->message, "\r\n")] = '\0';
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

static enum df_err_class class_of(const struct df_driver_call *c, const struct df_driver_fault *f)
{
    (void)c;
    if (df_streq(f->code, "InvalidOperation") && strcasestr(f->message, "MD5")) /* of Azurite */
        return DF_ERR_RETRY;
    for (size_t i = 0; i < DF_ARRAY_SIZE(classes); i++)
        if (df_streq(classes[i].code, f->code))
            return classes[i].cls;
    /* 404 of somebody on the way: the store names what is not there. */
    if (f->status == 404 || f->status == 408 || f->status == 409)
        return DF_ERR_RETRY;
    return df_driver_class_of(f->status);
}

static void add_way_out(const struct df_driver_attempt *a, struct df_buf *out)
{
    const struct df_driver_fault *f = &a->fault;
    if (!a->driver->names_keys)
        return;
    if (df_streq(f->code, NO_CONTAINER))
        (void)df_buf_adds(out, "; name a container that exists in blobs.location");
    else if (df_streq(f->code, "AuthenticationFailed"))
        (void)df_buf_adds(out, "; correct the key, signature or identity of the environment "
                               "(AZURE_*)");
    else if (f->status == 403)
        (void)df_buf_adds(out, "; the identity needs the role Storage Blob Data Contributor on the "
                               "container, a shared access signature the permissions "
                               "read, add, create, write, delete and list");
}

/* Another writer may be making it, too. */
static int make_container(struct df_driver *d, struct df_err *err)
{
    struct df_driver_call c = {.op = DF_DRIVER_PUT, .name = "", .what = "PUT the container"};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    df_driver_add_parameter(&c, "restype", "container");
    if (df_driver_send(d, &c, &res, &why) < 0 && why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    return 0;
}

static int recover(struct df_driver *d, const struct df_driver_call *c,
                   const struct df_driver_fault *f, const struct df_err *why, struct df_err *err)
{
    bool is_object = c->op == DF_DRIVER_PUT && *c->name;
    return is_object && azblob_of(d)->makes_container && df_streq(f->code, NO_CONTAINER)
               ? make_container(d, err)
               : df_err_pass(err, why);
}

/* ---- an attempt ---- */

/* What is said of one request twice: in its headers and in what is signed. */
struct head {
    char date[40];
    char md5[32]; /* base64; "" without a body */
};

/* A clock that is wrong by more than a quarter of an hour would make every request invalid. */
static void print_date(int64_t skew_us, char *out, size_t size)
{
    time_t now = (time_t)((df_real_us() + skew_us) / 1000000);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || !strftime(out, size, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        *out = '\0';
}

static int print_md5(const struct df_driver_call *c, char out[32], struct df_err *err)
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

static int add_headers(struct df_driver_attempt *a, struct head *h, struct df_err *err)
{
    const struct df_driver_call *c = a->call;
    print_date(a->skew_us, h->date, sizeof(h->date));
    if (print_md5(c, h->md5, err) < 0)
        return -1;
    if (c->body)
        (void)df_strs_add(&a->headers, "x-ms-blob-type: BlockBlob");
    else if (c->op == DF_DRIVER_PUT)
        (void)df_strs_add(&a->headers, "Content-Length: 0");
    (void)df_strs_addf(&a->headers, "x-ms-date: %s", h->date);
    (void)df_strs_add(&a->headers, "x-ms-version: " API_VERSION);
    if (*h->md5)
        (void)df_strs_addf(&a->headers, "Content-MD5: %s", h->md5);
    return 0;
}

static int sign(struct df_driver_attempt *a, const struct head *h, const char *key,
                struct df_err *err)
{
    const struct df_driver_call *c = a->call;
    const struct df_bucket_version *v = c->version;
    const char *path = strchr(strstr(df_buf_str(&a->url), "://") + 3, '/');
    DF_FREE char *own_path = strndup(path, strcspn(path, "?"));
    DF_FREE char *canonical = df_strf("%sx-ms-date:%s\nx-ms-version:" API_VERSION "\n",
                                      c->body ? "x-ms-blob-type:BlockBlob\n" : "", h->date);
    DF_BUF struct df_buf value = DF_BUF_INIT(256);
    const struct df_azure_request r = {.verb = a->driver->protocol->verbs[c->op].method,
                                       .content_length = c->n,
                                       .content_md5 = h->md5,
                                       .content_type = c->body ? DF_DRIVER_CONTENT_TYPE : "",
                                       .if_match = v ? v->text : "",
                                       .if_none_match = v && !*v->text ? "*" : "",
                                       .headers = canonical,
                                       .path = own_path,
                                       .query = c->query,
                                       .query_len = c->query_len};
    if (df_check_alloc(own_path, err) < 0 || df_check_alloc(canonical, err) < 0 ||
        df_azure_sign(&r, azblob_of(a->driver)->account, key, &value, err) < 0)
        return -1;
    (void)df_strs_addf(&a->headers, "Authorization: %s", df_buf_str(&value));
    return 0;
}

/* A shared access signature is the end of the query. */
static int prove(struct df_driver_attempt *a, const struct head *h, const struct df_azure_grant *g,
                 struct df_err *err)
{
    if (g->kind == DF_AZURE_KEY)
        return sign(a, h, g->text, err);
    if (g->kind == DF_AZURE_TOKEN)
        return df_http_set_bearer(a->http, g->text, err);
    (void)df_buf_addf(&a->url, "%c%s", a->call->query_len ? '&' : '?', g->text);
    return 0;
}

/* True if a second request with a newer token, or the store's time, may be accepted. */
static bool may_repeat(struct df_driver_attempt *a, const struct df_azure_grant *g)
{
    if (g->kind == DF_AZURE_TOKEN && a->res.status == 401) {
        df_azure_credentials_refused(azblob_of(a->driver)->credentials, g);
        return true;
    }
    return g->kind == DF_AZURE_KEY && a->res.status == 403 &&
           df_driver_take_time(a) > SKEW_S * INT64_C(1000000);
}

static int attempt(struct df_driver_attempt *a, struct df_err *err)
{
    DF_AZURE_GRANT grant = {0};
    struct head head;
    if (df_azure_credentials_get(azblob_of(a->driver)->credentials, &grant, err) < 0 ||
        add_headers(a, &head, err) < 0 || prove(a, &head, &grant, err) < 0 ||
        df_driver_exchange(a, err) < 0)
        return -1;
    a->may_repeat = df_driver_was_refused(a) && may_repeat(a, &grant);
    return 0;
}

/* ---- lists ---- */

static void ask_for_page(struct df_driver_call *c, const char *prefix, const char *after)
{
    df_driver_add_parameter(c, "comp", "list");
    df_driver_add_parameter(c, "marker", after ? after : "");
    df_driver_add_parameter(c, "maxresults", "1000");
    df_driver_add_parameter(c, "prefix", prefix);
    df_driver_add_parameter(c, "restype", "container");
}

static int read_time(const char *text, int64_t *ret_us, struct df_err *err)
{
    return df_http_date(text, ret_us) < 0
               ? df_fail(err, DF_ERR_SYSTEM, "Last-Modified: \"%.64s\" is not a date", text)
               : 0;
}

#define BLOB "EnumerationResults/Blobs/Blob"

static int read_page(struct df_driver_page *p, const struct df_buf *body, struct df_err *err)
{
    static const struct df_driver_xml_words words = {
        .item = BLOB,
        .name = BLOB "/Name",
        .size = BLOB "/Properties/Content-Length",
        .made = BLOB "/Properties/Last-Modified",
        .next = "EnumerationResults/NextMarker",
        .read_time = read_time,
    };
    return df_driver_xml_page(p, &words, body, err);
}

/* ---- opening ---- */

static void free_azblob(struct df_driver *d)
{
    struct azblob *a = azblob_of(d);
    df_azure_credentials_free(a->credentials);
    free(a->account);
}

static const struct df_driver_protocol protocol = {
    .verbs = {[DF_DRIVER_GET] = {"GET", "GET"},
              [DF_DRIVER_PUT] = {"PUT", "PUT"},
              [DF_DRIVER_REMOVE] = {"DELETE", "DELETE"},
              [DF_DRIVER_LIST] = {"GET", "GET the list"}},
    .attempt = attempt,
    .read_fault = read_fault,
    .class_of = class_of,
    .add_way_out = add_way_out,
    .recover = recover,
    .ask_for_page = ask_for_page,
    .read_page = read_page,
    .free = free_azblob,
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
    int n = (int)strcspn(o->place, "/");
    DF_FREE char *cloud = df_strf("https://%s.blob.core.windows.net", o->account);
    const char *e = df_str_empty(o->endpoint) ? cloud : o->endpoint;
    const struct df_driver_options options = {
        .protocol = &protocol,
        .bucket = df_strf("azblob://%s/%.*s", o->account, n, o->place),
        .url = e ? df_strf("%.*s/%.*s", (int)(strlen(e) - df_ends_with(e, "/")), e, n, o->place)
                 : NULL,
        .prefix = o->place[n] ? o->place + n + 1 : NULL,
        .ca_file = o->ca_file,
        .ca_pem = o->ca_pem,
        .names_keys = o->names_keys};
    a->makes_container = o->makes_container;
    if (df_driver_init(&a->driver, &options, err) < 0 ||
        df_str_set(&a->account, o->account, err) < 0)
        return -1;
    return o->key ? df_azure_credentials_given(o->key, &a->credentials, err)
                  : df_azure_credentials_new(&a->credentials, err);
}

int df_azblob_bucket_new(const struct df_azblob_options *o, struct df_bucket **ret,
                         struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct azblob *a = calloc(1, sizeof(*a));
    return a ? df_driver_opened(&a->driver, fill(a, o, err), ret, err) : df_fail_oom(err);
}
