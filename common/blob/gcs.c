/*
 * The protocol of a driver (driver.h) that speaks the JSON API of Google Cloud Storage. A version
 * is an object's generation. First failures, then an attempt, lists, versions of an object,
 * opening.
 */
#include "common/blob/gcs.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/blob/driver.h"
#include "common/gcp/credentials.h"
#include "common/json/json.h"

struct gcs {
    struct df_driver driver;                /* its URL is the service's */
    char *name;                             /* of the bucket */
    char *token;                            /* or NULL: that of the credentials */
    struct df_gcp_credentials *credentials; /* NULL: none are sent */
};

static struct gcs *gcs_of(const struct df_driver *d)
{
    return (struct gcs *)(uintptr_t)d; /* its first member */
}

/* ---- failures -------------------------------------------------------------------------------- */

/* What is not JSON is of somebody on the way; or a download that was refused (look_for()). */
static void read_fault(const struct df_http_response *res, struct df_driver_fault *f)
{
    DF_JSON cJSON *body = NULL;
    (void)!df_json_parse(df_buf_str(&res->body), res->body.len, &body, NULL);
    const char *message = df_json_str(body, "error.message");
    f->is_stores = message;
    df_copy(f->message, sizeof(f->message), message ? message : df_buf_str(&res->body));
}

/* There need be no object, but there must be a bucket. */
static bool is_no_bucket(const struct df_driver_call *c, const struct df_driver_fault *f)
{
    return f->status == 404 && f->is_stores && (c->op == DF_DRIVER_PUT || c->op == DF_DRIVER_LIST);
}

static enum df_err_class class_of(const struct df_driver_call *c, const struct df_driver_fault *f)
{
    if (is_no_bucket(c, f))
        return DF_ERR_USER;
    if (f->status == 404)
        return f->is_stores ? DF_ERR_NOT_FOUND : DF_ERR_RETRY;
    return f->status == 408 ? DF_ERR_RETRY : df_driver_class_of(f->status);
}

static void add_way_out(const struct df_driver_attempt *a, struct df_buf *out)
{
    int status = a->fault.status;
    if (!a->driver->names_keys)
        return;
    if (is_no_bucket(a->call, &a->fault))
        (void)df_buf_adds(out, "; name a bucket that exists in blobs.location");
    else if (status == 401)
        (void)df_buf_adds(out,
                          "; the credentials of the environment "
                          "(GOOGLE_APPLICATION_CREDENTIALS, else the metadata service) must be "
                          "those of an account");
    else if (status == 403)
        (void)df_buf_adds(out, "; the account needs the role roles/storage.objectUser on the "
                               "bucket");
}

/* The answer to a call, in JSON. */
static int ask(struct df_driver *d, const struct df_driver_call *c, cJSON **ret, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_driver_send(d, c, &res, err) < 0)
        return -1;
    return df_json_parse(df_buf_str(&res.body), res.body.len, ret, err) < 0
               ? df_err_wrap(err, "%s of %s", c->what, d->bucket.place)
               : 0;
}

/* A list shows the newest version alone. */
static int look_for_version(struct df_driver *d, const struct df_driver_call *download,
                            struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_driver_call c = {
        .op = DF_DRIVER_ASK, .name = download->name, .what = "look for a version"};
    df_driver_add_parameter(&c, "fields", "generation");
    df_driver_add_parameter(&c, download->query[0].name, download->query[0].value);
    return df_driver_send(d, &c, &res, err);
}

/* *ret: is there an object of this name? The failure of a bucket that does not exist is its own. */
static int look_for_object(struct df_driver *d, const char *name, bool *ret, struct df_err *err)
{
    DF_FREE char *whole = df_strf("%s%s", d->prefix, name);
    DF_JSON cJSON *page = NULL;
    struct df_driver_call c = {.op = DF_DRIVER_LIST, .name = "", .what = "look for an object"};
    if (!whole)
        return df_fail_oom(err);
    df_driver_add_parameter(&c, "fields", "items(name)");
    df_driver_add_parameter(&c, "maxResults", "1"); /* a name is before those that begin with it */
    df_driver_add_parameter(&c, "prefix", whole);
    if (ask(d, &c, &page, err) < 0)
        return -1;
    const cJSON *first = cJSON_GetArrayItem(df_json_at(page, "items"), 0);
    *ret = df_streq(df_json_str(first, "name"), whole);
    return 0;
}

/* A download that is refused with 404 has a plain text, as a page of anybody could, and does not
 * tell a missing object from a missing bucket. 0: it is there. */
static int look_for(struct df_driver *d, const struct df_driver_call *download, struct df_err *err)
{
    bool wants_version = download->query_len, is_there = false;
    struct df_err why = {0};
    if (wants_version && (look_for_version(d, download, &why) == 0 || why.cls != DF_ERR_NOT_FOUND))
        return why.cls == DF_ERR_NONE ? 0 : df_err_pass(err, &why);
    if (look_for_object(d, download->name, &is_there, err) < 0)
        return -1;
    return is_there && !wants_version
               ? 0
               : df_fail(err, DF_ERR_NOT_FOUND, "get %s: there is no such object in %s",
                         download->name, d->bucket.place);
}

static int recover(struct df_driver *d, const struct df_driver_call *c,
                   const struct df_driver_fault *f, const struct df_err *why, struct df_err *err)
{
    bool is_download = c->op == DF_DRIVER_GET && f->status == 404;
    return is_download && look_for(d, c, err) < 0 ? -1 : df_err_pass(err, why);
}

/* ---- an attempt ---- */

static void add_name(const struct df_driver_attempt *a, struct df_buf *out)
{
    df_url_add_escaped(out, a->driver->prefix);
    df_url_add_escaped(out, a->call->name);
}

/* 0 is the generation of an object that is not there. */
static void add_condition(const struct df_bucket_version *version, struct df_buf *out)
{
    if (version)
        df_url_add_parameter(out, "ifGenerationMatch", *version->text ? version->text : "0");
}

static void print_url(const struct df_driver_attempt *a, struct df_buf *out)
{
    const struct df_driver_call *c = a->call;
    (void)df_buf_addf(out, "%s%s/storage/v1/b/%s", a->driver->url,
                      c->op == DF_DRIVER_PUT ? "/upload" : "", gcs_of(a->driver)->name);
    if (c->op == DF_DRIVER_PUT || c->op == DF_DRIVER_LIST)
        (void)df_buf_adds(out, "/o");
    else if (*c->name) {
        (void)df_buf_adds(out, "/o/");
        add_name(a, out);
    }
    if (c->op == DF_DRIVER_GET)
        (void)df_buf_adds(out, "?alt=media");
    if (c->op == DF_DRIVER_PUT) {
        (void)df_buf_adds(out, "?uploadType=media&name=");
        add_name(a, out);
    }
    add_condition(c->version, out);
}

static int send_with_token(struct df_driver_attempt *a, const char *token, struct df_err *err)
{
    struct gcs *g = gcs_of(a->driver);
    if (token && df_http_set_bearer(a->http, token, err) < 0)
        return -1;
    if (df_driver_exchange(a, err) < 0)
        return -1;
    a->may_repeat = df_driver_was_refused(a) && a->res.status == 401 && g->credentials;
    if (a->may_repeat)
        df_gcp_credentials_refused(g->credentials, token);
    return 0;
}

static int attempt(struct df_driver_attempt *a, struct df_err *err)
{
    const struct gcs *g = gcs_of(a->driver);
    char *token = NULL;
    if (g->credentials ? df_gcp_credentials_get(g->credentials, &token, err) < 0
                       : df_str_set(&token, g->token, err) < 0)
        return -1;
    int result = send_with_token(a, token, err);
    df_str_wipe(&token);
    return result;
}

/* ---- lists ---- */

static void ask_for_page(struct df_driver_call *c, const char *prefix, const char *after)
{
    df_driver_add_parameter(c, "fields", "items(name,size,timeCreated),nextPageToken");
    df_driver_add_parameter(c, "prefix", prefix);
    if (after)
        df_driver_add_parameter(c, "pageToken", after);
}

static int give_object(const struct df_driver_page *p, const cJSON *item, struct df_err *err)
{
    const char *name = df_json_str(item, "name"), *size = df_json_str(item, "size");
    const char *made = df_json_str(item, "timeCreated");
    int64_t n = 0, made_us = INT64_MAX; /* of unknown age: not old */
    if (!name)
        return 0;
    if (size && df_parse_i64(size, 0, INT64_MAX, &n, err) < 0)
        return -1;
    if (made && df_time_parse(made, &made_us, err) < 0)
        return -1;
    return df_driver_give(p, name, n, made_us, err);
}

static int read_page(struct df_driver_page *p, const struct df_buf *body, struct df_err *err)
{
    DF_JSON cJSON *page = NULL;
    const cJSON *item;
    if (df_json_parse(df_buf_str(body), body->len, &page, err) < 0)
        return df_err_wrap(err, "list %s", p->driver->bucket.place);
    cJSON_ArrayForEach (item, df_json_at(page, "items"))
        if (give_object(p, item, err) < 0)
            return -1;
    return df_str_set(&p->next, df_json_str(page, "nextPageToken"), err);
}

/* ---- versions of an object ---- */

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

static int list_page(struct df_driver *d, const char *whole, char **after,
                     struct generations *found, struct df_err *err)
{
    struct df_driver_call c = {.op = DF_DRIVER_LIST, .name = "", .what = "list the versions"};
    DF_JSON cJSON *page = NULL;
    const cJSON *item;
    df_driver_add_parameter(&c, "versions", "true");
    df_driver_add_parameter(&c, "fields", "items(name,generation,size,timeCreated),nextPageToken");
    df_driver_add_parameter(&c, "prefix", whole);
    if (*after)
        df_driver_add_parameter(&c, "pageToken", *after);
    if (ask(d, &c, &page, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, df_json_at(page, "items"))
        if (df_streq(df_json_str(item, "name"), whole) && take_generation(item, found, err) < 0)
            return -1;
    return df_str_set(after, df_json_str(page, "nextPageToken"), err);
}

/* Who may not see the bucket's settings is not told that it keeps no versions. */
static int is_versioned(struct df_driver *d, bool *ret, struct df_err *err)
{
    struct df_driver_call c = {.op = DF_DRIVER_ASK, .name = "", .what = "look at the versioning"};
    DF_JSON cJSON *settings = NULL;
    struct df_err why = {0};
    df_driver_add_parameter(&c, "fields", "versioning");
    *ret = true;
    if (ask(d, &c, &settings, &why) < 0)
        return why.cls == DF_ERR_DENIED ? 0 : df_err_pass(err, &why);
    *ret = df_json_bool(settings, "versioning.enabled", false);
    return 0;
}

static int give_generations(struct df_driver *d, const struct generations *found,
                            const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    bool versioned = true;
    if (found->len == 1 && is_versioned(d, &versioned, err) < 0)
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

static int list_kept(struct df_driver *d, const char *whole, size_t max,
                     const struct df_bucket_kept_sink *sink, struct df_err *err)
{
    DF_FREE char *after = NULL;
    struct generations found = {.items = calloc(max, sizeof(struct generation)), .max = max};
    int result = df_check_alloc(found.items, err);
    while (result == 0) {
        result = list_page(d, whole, &after, &found, err);
        if (!after)
            break;
    }
    if (result == 0)
        result = give_generations(d, &found, sink, err);
    free(found.items);
    return result;
}

/* ---- opening ---- */

static void free_gcs(struct df_driver *d)
{
    struct gcs *g = gcs_of(d);
    df_gcp_credentials_free(g->credentials);
    free(g->name);
    df_str_wipe(&g->token);
}

static const struct df_driver_protocol protocol = {
    .verbs = {[DF_DRIVER_GET] = {"GET", "get"},
              [DF_DRIVER_PUT] = {"POST", "put"},
              [DF_DRIVER_REMOVE] = {"DELETE", "remove"},
              [DF_DRIVER_LIST] = {"GET", "list"},
              [DF_DRIVER_ASK] = {"GET", ""}},
    .has_generations = true,
    .print_url = print_url,
    .attempt = attempt,
    .read_fault = read_fault,
    .class_of = class_of,
    .add_way_out = add_way_out,
    .recover = recover,
    .ask_for_page = ask_for_page,
    .read_page = read_page,
    .list_kept = list_kept,
    .version_parameter = "generation",
    .free = free_gcs,
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

static int find_credentials(struct gcs *g, const struct df_gcs_options *o, struct df_err *err)
{
    if (o->credentials)
        return df_gcp_credentials_given(o->credentials, &g->credentials, err);
    return o->anonymous || o->token ? df_str_set(&g->token, o->token, err)
                                    : df_gcp_credentials_new(&g->credentials, err);
}

static int fill(struct gcs *g, const struct df_gcs_options *o, struct df_err *err)
{
    const char *e = df_str_empty(o->endpoint) ? "https://storage.googleapis.com" : o->endpoint;
    const struct df_driver_options options = {
        .protocol = &protocol,
        .bucket = df_strf("gs://%s", o->bucket),
        .url = df_strf("%.*s", (int)(strlen(e) - df_ends_with(e, "/")), e),
        .prefix = o->prefix,
        .ca_file = o->ca_file,
        .ca_pem = o->ca_pem,
        .names_keys = o->names_keys};
    if (df_driver_init(&g->driver, &options, err) < 0 || df_str_set(&g->name, o->bucket, err) < 0)
        return -1;
    return find_credentials(g, o, err);
}

int df_gcs_bucket_new(const struct df_gcs_options *o, struct df_bucket **ret, struct df_err *err)
{
    if (check_options(o, err) < 0)
        return -1;
    struct gcs *g = calloc(1, sizeof(*g));
    return g ? df_driver_opened(&g->driver, fill(g, o, err), ret, err) : df_fail_oom(err);
}
