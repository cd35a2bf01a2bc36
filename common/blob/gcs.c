/*
 * The driver of a bucket (bucket.h) that speaks the JSON API of Google Cloud Storage. A version is an
 * object's generation. First failures, then the request, the calls, opening.
 */
#include "common/blob/gcs.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/blob/backend.h"
#include "common/blob/driver.h"
#include "common/gcp/credentials.h"
#include "common/http/pool.h"
#include "common/json/json.h"

enum { IDLE_MS = 30000 };

struct gcs {
    struct df_bucket bucket;
    char *name;     /* of the bucket */
    char *endpoint; /* without a slash at the end */
    char *prefix;   /* with a slash at the end, or "" */
    char *ca_file;  /* or NULL, as the next */
    char *ca_pem;
    char *token;                            /* or NULL: that of the credentials */
    struct df_gcp_credentials *credentials; /* NULL: none are sent */
    struct df_http_pool *pool;
    bool names_keys; /* as of the options */
};

static struct gcs *gcs_of(struct df_bucket *b)
{
    return (struct gcs *)b; /* its first member */
}

/* ---- failures -------------------------------------------------------------------------------- */

/* told: by the store itself, in JSON, and not by somebody on the way. */
static enum df_err_class class_of(int status, bool told)
{
    if (status == 404)
        return told ? DF_ERR_NOT_FOUND : DF_ERR_RETRY;
    return status == 408 ? DF_ERR_RETRY : df_driver_class_of(status);
}

static const char *way_out(const struct gcs *g, int status)
{
    if (!g->names_keys)
        return "";
    if (status == 401)
        return "; the credentials of the environment (GOOGLE_APPLICATION_CREDENTIALS, else the "
               "metadata service) must be those of an account";
    return status == 403 ? "; the account needs the role roles/storage.objectUser on the bucket"
                         : "";
}

/* There need be no object, but there must be a bucket. */
static int fail_bucket(const struct gcs *g, struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, why);
    return df_fail(err, DF_ERR_USER, "%s%s", why->message,
                   g->names_keys ? "; name a bucket that exists in blobs.location" : "");
}

static int fail_answer(struct gcs *g, const char *what, const struct df_http_response *res,
                       struct df_err *err)
{
    DF_JSON cJSON *body = NULL;
    (void)!df_json_parse(df_buf_str(&res->body), res->body.len, &body, NULL);
    const char *message = df_json_str(body, "error.message");
    const char *text = message ? message : df_buf_str(&res->body);
    (void)df_fail(err, class_of(res->status, message), "%s of %s: HTTP %d%s%.256s%s", what,
                  g->bucket.place, res->status, *text ? ": " : "", text, way_out(g, res->status));
    if (err && res->retry_after_s > 0)
        err->retry_after_s = res->retry_after_s;
    return -1;
}

/* ---- the request ------------------------------------------------------------------------------ */

struct call {
    const char *verb, *what;
    const char *url; /* NULL: out of memory */
    const void *body;
    size_t n, max_response;
    const struct df_strs *headers; /* or NULL */
    struct df_buf *out;            /* for the content, or NULL */
    struct df_driver_file *file;   /* the same */
    int *status;                   /* of the answer that is a failure; or NULL */
};

static int send_once(struct df_http *h, const char *token, const struct call *c,
                     struct df_http_response *res, struct df_err *err)
{
    struct df_http_request req = DF_HTTP_REQUEST(c->verb, c->url);
    req.headers = c->headers;
    req.content_type = "application/octet-stream";
    req.body = c->body;
    req.body_len = c->n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.max_response = c->max_response;
    req.on_data = c->file ? df_driver_file_take : c->out ? df_bucket_take : NULL;
    req.arg = c->file ? (void *)c->file : c->out;
    if (token && df_http_set_bearer(h, token, err) < 0)
        return -1;
    return df_http_send(h, &req, res, err);
}

/* *ret_refused: the token was, and a newer one may be accepted. */
static int send_with_token(struct gcs *g, struct df_http *h, const struct call *c,
                           struct df_http_response *res, bool *ret_refused, struct df_err *err)
{
    char *token = NULL;
    if (g->token && df_str_set(&token, g->token, err) < 0)
        return -1;
    if (g->credentials && df_gcp_credentials_get(g->credentials, &token, err) < 0)
        return -1;
    int result = send_once(h, token, c, res, err);
    *ret_refused = result == 0 && res->status == 401 && g->credentials;
    if (*ret_refused)
        df_gcp_credentials_refused(g->credentials, token);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    return result;
}

static int send_on(struct gcs *g, struct df_http *h, const struct call *c,
                   struct df_http_response *ret, struct df_err *err)
{
    for (int i = 0;; i++) {
        DF_HTTP_RESPONSE struct df_http_response res = {0};
        bool refused = false;
        if (send_with_token(g, h, c, &res, &refused, err) < 0)
            return -1;
        if (res.status >= 200 && res.status < 300) {
            *ret = res;
            res = (struct df_http_response){0};
            return 0;
        }
        if (i || !refused) {
            if (c->status)
                *c->status = res.status;
            return fail_answer(g, c->what, &res, err);
        }
    }
}

static int send_call(struct gcs *g, const struct call *c, struct df_http_response *ret,
                     struct df_err *err)
{
    struct df_http *h = NULL;
    if (!c->url)
        return df_fail_oom(err);
    if (df_http_pool_take(g->pool, &h, err) < 0)
        return -1;
    int result = send_on(g, h, c, ret, err);
    df_http_pool_give(g->pool, h);
    return result;
}

/* ---- URLs ---------------------------------------------------------------------------------------- */

/* The name with the prefix, escaped: slashes, too. The caller frees; NULL: out of memory. */
static char *escaped_name(const struct gcs *g, const char *name)
{
    DF_FREE char *whole = df_strf("%s%s", g->prefix, name);
    return whole ? df_url_escape(whole) : NULL;
}

static const char *condition(const struct df_bucket_version *version)
{
    return version ? "ifGenerationMatch=" : "";
}

/* 0 is the generation of an object that is not there. */
static const char *generation(const struct df_bucket_version *version)
{
    return !version ? "" : *version->text ? version->text : "0";
}

static char *object_url(const struct gcs *g, const char *name,
                        const struct df_bucket_version *version, const char *query)
{
    DF_FREE char *object = escaped_name(g, name);
    return object ? df_strf("%s/storage/v1/b/%s/o/%s?%s%s%s", g->endpoint, g->name, object, query,
                            condition(version), generation(version))
                  : NULL;
}

static char *upload_url(const struct gcs *g, const char *name,
                        const struct df_bucket_version *version)
{
    DF_FREE char *object = escaped_name(g, name);
    return object ? df_strf("%s/upload/storage/v1/b/%s/o?uploadType=media&name=%s%s%s%s",
                            g->endpoint, g->name, object, version ? "&" : "", condition(version),
                            generation(version))
                  : NULL;
}

static char *list_url(const struct gcs *g, const char *prefix, const char *after)
{
    DF_FREE char *escaped = escaped_name(g, prefix);
    DF_FREE char *token = after ? df_url_escape(after) : NULL;
    if (!escaped || (after && !token))
        return NULL;
    return df_strf("%s/storage/v1/b/%s/o?fields=items(name%%2Csize%%2CtimeCreated)%%2CnextPageToken"
                   "&prefix=%s%s%s",
                   g->endpoint, g->name, escaped, token ? "&pageToken=" : "", token ? token : "");
}

/* ---- the calls -------------------------------------------------------------------------------- */

/* Into out, or if that is NULL into file. *ret_status: of an answer that is a failure. */
static int download(struct gcs *g, const char *name, struct df_buf *out,
                    struct df_driver_file *file, struct df_http_response *res, int *ret_status,
                    struct df_err *err)
{
    DF_FREE char *what = df_strf("get %s", name);
    DF_FREE char *url = object_url(g, name, NULL, "alt=media");
    const struct call c = {.verb = "GET",
                           .what = what ? what : "get",
                           .url = url,
                           .max_response = out ? out->max : 0,
                           .out = out,
                           .file = file,
                           .status = ret_status};
    if (send_call(g, &c, res, err) < 0)
        return -1;
    return out ? df_buf_check(out, err) : df_driver_file_end(file, err);
}

/* A download that is refused with 404 has a plain text, as a page of anybody could: the answer for
 * the object's description is JSON. why: of the download; its failure if there is an object. */
static int look_for(struct gcs *g, const char *name, const struct df_err *why, struct df_err *err)
{
    DF_FREE char *what = df_strf("look for %s", name);
    DF_FREE char *url = object_url(g, name, NULL, "fields=generation");
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call c = {.verb = "GET", .what = what ? what : "look for", .url = url};
    return send_call(g, &c, &res, err) < 0 ? -1 : df_err_pass(err, why);
}

static int get_object(struct df_bucket *b, const char *name, struct df_buf *out,
                      struct df_bucket_version *ret_version, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    int status = 0;
    if (download(gcs_of(b), name, out, NULL, &res, &status, &why) < 0)
        return status == 404 ? look_for(gcs_of(b), name, &why, err) : df_err_pass(err, &why);
    if (!*res.generation)
        return df_fail(err, DF_ERR_SYSTEM, "get %s of %s: the answer has no x-goog-generation",
                       name, b->place);
    (void)snprintf(ret_version->text, sizeof(ret_version->text), "%s", res.generation);
    return 0;
}

static int save_object(struct df_bucket *b, const char *name, int fd, int64_t max,
                       struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_driver_file file;
    struct df_err why = {0};
    int status = 0;
    if (df_driver_file_begin(&file, fd, max, err) < 0)
        return -1;
    if (download(gcs_of(b), name, NULL, &file, &res, &status, &why) < 0)
        return status == 404 ? look_for(gcs_of(b), name, &why, err) : df_err_pass(err, &why);
    return 0;
}

static int put_object(struct df_bucket *b, const char *name, const void *bytes, size_t n,
                      const struct df_bucket_version *version, struct df_err *err)
{
    DF_FREE char *what = df_strf("put %s", name);
    DF_FREE char *url = upload_url(gcs_of(b), name, version);
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call c = {
        .verb = "POST", .what = what ? what : "put", .url = url, .body = bytes, .n = n};
    struct df_err why = {0};
    return send_call(gcs_of(b), &c, &res, &why) < 0 ? fail_bucket(gcs_of(b), &why, err) : 0;
}

static int remove_object(struct df_bucket *b, const char *name,
                         const struct df_bucket_version *version, struct df_err *err)
{
    DF_FREE char *what = df_strf("remove %s", name);
    DF_FREE char *url = object_url(gcs_of(b), name, version, "");
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call c = {.verb = "DELETE", .what = what ? what : "remove", .url = url};
    return send_call(gcs_of(b), &c, &res, err);
}

static int give_object(struct gcs *g, const cJSON *item, const struct df_bucket_sink *sink,
                       struct df_err *err)
{
    const char *whole = df_json_str(item, "name"), *size = df_json_str(item, "size");
    const char *name = whole ? df_driver_own_name(whole, g->prefix) : NULL;
    const char *made = df_json_str(item, "timeCreated");
    int64_t n = 0, made_us = INT64_MAX; /* of unknown age: not old */
    if (!name)
        return 0;
    if (size && df_parse_i64(size, 0, INT64_MAX, &n, err) < 0)
        return -1;
    if (made && df_time_parse(made, &made_us, err) < 0)
        return -1;
    return sink->item(sink->arg, name, n, made_us, err);
}

static int list_objects(struct df_bucket *b, const char *prefix, char **after,
                        const struct df_bucket_sink *sink, struct df_err *err)
{
    DF_FREE char *url = list_url(gcs_of(b), prefix, *after);
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    DF_JSON cJSON *page = NULL;
    const struct call c = {.verb = "GET", .what = "list", .url = url};
    struct df_err why = {0};
    if (send_call(gcs_of(b), &c, &res, &why) < 0)
        return fail_bucket(gcs_of(b), &why, err);
    if (df_json_parse(df_buf_str(&res.body), res.body.len, &page, err) < 0)
        return df_err_wrap(err, "list %s", b->place);
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(page, "items"))
        if (give_object(gcs_of(b), item, sink, err) < 0)
            return -1;
    return df_str_set(after, df_json_str(page, "nextPageToken"), err);
}

/* ---- versions of an object ---------------------------------------------------------------------- */

/* The newest versions that were seen, in the order of their generations: the store lists the oldest
 * first. */
struct generations {
    struct generation {
        int64_t number, size, made_us;
    } * items;
    size_t len, max;
};

static void keep_generation(struct generations *g, const struct generation *one)
{
    size_t at = g->len;
    while (at > 0 && g->items[at - 1].number < one->number)
        at--;
    if (at == g->max)
        return;
    size_t moved = (g->len == g->max ? g->max - 1 : g->len) - at;
    memmove(&g->items[at + 1], &g->items[at], moved * sizeof(*one));
    g->items[at] = *one;
    g->len += g->len < g->max;
}

static int take_generation(const cJSON *item, struct generations *g, struct df_err *err)
{
    const char *number = df_json_str(item, "generation"), *size = df_json_str(item, "size");
    const char *made = df_json_str(item, "timeCreated");
    struct generation one = {0};
    if (df_parse_i64(number ? number : "", 1, INT64_MAX, &one.number, err) < 0 ||
        df_parse_i64(size ? size : "", 0, INT64_MAX, &one.size, err) < 0 ||
        df_time_parse(made ? made : "", &one.made_us, err) < 0)
        return -1;
    keep_generation(g, &one);
    return 0;
}

/* Asks for a description in JSON. */
static int ask(struct gcs *g, const char *what, const char *url, cJSON **ret, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call c = {.verb = "GET", .what = what, .url = url};
    if (send_call(g, &c, &res, err) < 0)
        return -1;
    return df_json_parse(df_buf_str(&res.body), res.body.len, ret, err) < 0
               ? df_err_wrap(err, "%s of %s", what, g->bucket.place)
               : 0;
}

static int list_page(struct gcs *g, const char *whole, char **after, struct generations *found,
                     struct df_err *err)
{
    DF_FREE char *escaped = df_url_escape(whole);
    DF_FREE char *token = *after ? df_url_escape(*after) : NULL;
    DF_FREE char *url =
        escaped && (token || !*after)
            ? df_strf("%s/storage/v1/b/%s/o?versions=true&fields=items(name%%2Cgeneration%%2Csize"
                      "%%2CtimeCreated)%%2CnextPageToken&prefix=%s%s%s",
                      g->endpoint, g->name, escaped, token ? "&pageToken=" : "", token ? token : "")
            : NULL;
    DF_JSON cJSON *page = NULL;
    const cJSON *item;
    if (ask(g, "list the versions", url, &page, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, df_json_at(page, "items"))
        if (df_streq(df_json_str(item, "name"), whole) && take_generation(item, found, err) < 0)
            return -1;
    return df_str_set(after, df_json_str(page, "nextPageToken"), err);
}

/* Who may not see the bucket's settings is not told that it keeps no versions. */
static int is_versioned(struct gcs *g, bool *ret, struct df_err *err)
{
    DF_FREE char *url = df_strf("%s/storage/v1/b/%s?fields=versioning", g->endpoint, g->name);
    DF_JSON cJSON *settings = NULL;
    struct df_err why = {0};
    *ret = true;
    if (ask(g, "look at the versioning", url, &settings, &why) < 0)
        return why.cls == DF_ERR_DENIED ? 0 : df_err_pass(err, &why);
    *ret = df_json_bool(settings, "versioning.enabled", false);
    return 0;
}

static int give_generations(struct gcs *g, const struct generations *found,
                            const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    bool versioned = true;
    if (found->len == 1 && is_versioned(g, &versioned, err) < 0)
        return -1;
    for (size_t i = 0; i < found->len; i++) {
        const struct generation *one = &found->items[i];
        char id[24];
        (void)snprintf(id, sizeof(id), "%lld", (long long)one->number);
        const struct df_bucket_kept kept = {.id = versioned ? id : DF_BUCKET_UNVERSIONED,
                                            .size = one->size,
                                            .made_us = one->made_us};
        if (sink->item(sink->arg, &kept, err) < 0)
            return -1;
    }
    return 0;
}

static int list_kept(struct df_bucket *b, const char *name, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    struct gcs *g = gcs_of(b);
    DF_FREE char *whole = df_strf("%s%s", g->prefix, name);
    DF_FREE char *after = NULL;
    struct generations found = {.items = calloc(max, sizeof(struct generation)), .max = max};
    int result = whole && found.items ? 0 : df_fail_oom(err);
    while (result == 0) {
        result = list_page(g, whole, &after, &found, err);
        if (!after)
            break;
    }
    if (result == 0)
        result = give_generations(g, &found, sink, err);
    free(found.items);
    return result;
}

static int get_kept(struct df_bucket *b, const char *name, const char *id, size_t n,
                    struct df_buf *out, struct df_err *err)
{
    struct gcs *g = gcs_of(b);
    DF_FREE char *object = escaped_name(g, name), *generation = df_url_escape(id);
    DF_FREE char *url = object && generation
                            ? df_strf("%s/storage/v1/b/%s/o/%s?alt=media&generation=%s",
                                      g->endpoint, g->name, object, generation)
                            : NULL;
    DF_STRS struct df_strs headers = {0};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (n)
        (void)df_strs_addf(&headers, "Range: bytes=0-%zu", n - 1);
    const struct call c = {.verb = "GET",
                           .what = "get a version",
                           .url = url,
                           .headers = &headers,
                           .max_response = out->max,
                           .out = out};
    if (df_strs_check(&headers, err) < 0)
        return -1;
    return send_call(g, &c, &res, err) < 0 ? -1 : df_buf_check(out, err);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void close_bucket(struct df_bucket *b)
{
    struct gcs *g = gcs_of(b);
    df_http_pool_free(g->pool);
    df_gcp_credentials_free(g->credentials);
    free(g->bucket.place);
    free(g->name);
    free(g->endpoint);
    free(g->prefix);
    free(g->ca_file);
    free(g->ca_pem);
    if (g->token)
        explicit_bzero(g->token, strlen(g->token));
    free(g->token);
    free(g);
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

static int check_options(const struct df_gcs_options *o, struct df_err *err)
{
    size_t n = strspn(o->bucket, "abcdefghijklmnopqrstuvwxyz0123456789._-");
    if (n < 3 || n > 222 || o->bucket[n]) {
        (void)df_fail(err, DF_ERR_USER, "\"%s\" is not the name of a bucket", o->bucket);
        return df_driver_at(o->names_keys, "blobs.location", err);
    }
    if (!df_str_empty(o->prefix) && df_driver_check_prefix(o->prefix, err) < 0)
        return df_driver_at(o->names_keys, "blobs.location", err);
    return df_driver_check_endpoint(o->endpoint, err) < 0
               ? df_driver_at(o->names_keys, "blobs.gs.endpoint", err)
               : 0;
}

static int fill(struct gcs *g, const struct df_gcs_options *o, struct df_err *err)
{
    bool whole = df_str_empty(o->prefix);
    const char *e = df_str_empty(o->endpoint) ? "https://storage.googleapis.com" : o->endpoint;
    g->bucket.ops = &ops;
    g->names_keys = o->names_keys;
    g->bucket.place = df_strf("gs://%s%s%s", o->bucket, whole ? "" : "/", whole ? "" : o->prefix);
    g->name = strdup(o->bucket);
    g->endpoint = df_strf("%.*s", (int)(strlen(e) - df_ends_with(e, "/")), e);
    g->prefix = whole ? strdup("") : df_strf("%s/", o->prefix);
    if (!g->bucket.place || !g->name || !g->endpoint || !g->prefix)
        return df_fail_oom(err);
    if (df_str_set(&g->ca_file, o->ca_file, err) < 0 ||
        df_str_set(&g->ca_pem, o->ca_pem, err) < 0 || df_str_set(&g->token, o->token, err) < 0)
        return -1;
    const struct df_http_options http = {
        .ca_file = g->ca_file, .ca_pem = g->ca_pem, .piece = DF_DRIVER_PIECE};
    if (o->credentials && df_gcp_credentials_given(o->credentials, &g->credentials, err) < 0)
        return -1;
    if (!o->anonymous && !o->token && !o->credentials &&
        df_gcp_credentials_new(&g->credentials, err) < 0)
        return -1;
    return df_http_pool_new(&http, &g->pool, err);
}

int df_gcs_bucket_new(const struct df_gcs_options *o, struct df_bucket **ret, struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct gcs *g = calloc(1, sizeof(*g));
    if (!g)
        return df_fail_oom(err);
    if (fill(g, o, err) < 0) {
        close_bucket(&g->bucket);
        return df_driver_at(o->names_keys, "blobs.location", err);
    }
    *ret = &g->bucket;
    return 0;
}
