/*
 * ApiTerraformStateImpl, since 2.34: objects go through the API, which alone reaches the storage.
 * It takes what has the digest of its header, and has no place for tools.
 */
#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "common/http/download.h"
#include "common/terrakube/store.h"
#include "common/terrakube/token.h"

enum { LIFE_S = 300, IDLE_MS = 60000 };

struct by_api {
    struct df_terrakube_store store;
    const struct df_terrakube_settings *settings; /* borrowed */
    const volatile bool *stop;                    /* or NULL */
    struct df_http *http;
    bool is_admitted; /* the API has taken an object */
};

static struct by_api *by_api_of(struct df_terrakube_store *s)
{
    return (struct by_api *)s; /* its first member */
}

/* The caller frees; NULL: no memory. */
static char *url_of(const struct by_api *a, const struct df_terrakube_item *i)
{
    const char *base = a->settings->public_url;
    int n = (int)(strlen(base) - df_ends_with(base, "/"));
    switch (i->what) {
    case DF_TERRAKUBE_OBJECT_PLAN:
        return df_strf("%.*s/tfstate/v1/organization/%s/workspace/%s/jobId/%s/step/%s/"
                       "terraform.tfstate",
                       n, base, i->organization, i->workspace, i->job, i->step);
    case DF_TERRAKUBE_OBJECT_STATE_JSON:
    case DF_TERRAKUBE_OBJECT_STATE_RAW:
        return df_strf(
            "%.*s/tfstate/v1/organization/%s/workspace/%s/history/%s/terraform%s.tfstate", n, base,
            i->organization, i->workspace, i->name,
            i->what == DF_TERRAKUBE_OBJECT_STATE_JSON ? ".json" : "");
    case DF_TERRAKUBE_OBJECT_OUTPUT:
        return df_strf("%.*s/tfoutput/v1/organization/%s/job/%s/step/%s", n, base, i->organization,
                       i->job, i->step);
    case DF_TERRAKUBE_OBJECT_BINARY:
        break;
    }
    DF_BUG("object %d", (int)i->what);
}

static int add_token(struct by_api *a, struct df_err *err)
{
    struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    int result = df_terrakube_token_make(a->settings->internal_secret, NULL, df_real_us(), LIFE_S,
                                         &token, err);
    if (result == 0)
        result = df_http_set_bearer(a->http, df_buf_str(&token), err);
    df_buf_wipe(&token);
    return result;
}

static const char *type_of(enum df_terrakube_object what)
{
    return what == DF_TERRAKUBE_OBJECT_PLAN     ? "application/octet-stream"
           : what == DF_TERRAKUBE_OBJECT_OUTPUT ? "text/plain"
                                                : "application/json";
}

/* 409: the bytes that came have another digest. Whoever was admitted before is not refused for
 * good, and a 404 is that of a gateway then. */
static bool is_for_now(const struct by_api *a, int status)
{
    return status == 409 || status == 423 || status >= 500 ||
           (a->is_admitted && (status == 401 || status == 403 || status == 404));
}

static int send_bytes(struct by_api *a, const struct df_terrakube_item *i, const char *url,
                      const void *bytes, size_t n, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    DF_STRS struct df_strs headers = {0};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_http_request req = DF_HTTP_REQUEST("PUT", url);
    if (df_sha256_hex(bytes, n, digest, err) < 0 || add_token(a, err) < 0)
        return -1;
    (void)df_strs_addf(&headers, "X-Content-Sha256: %s", digest);
    req.headers = &headers;
    req.content_type = type_of(i->what);
    req.body = bytes;
    req.body_len = n;
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.stop = a->stop;
    if (df_strs_check(&headers, err) < 0 || df_http_send(a->http, &req, &res, err) < 0)
        return -1;
    if (is_for_now(a, res.status))
        return df_fail(err, DF_ERR_RETRY, "put an object through Terrakube's API: %s: HTTP %d", url,
                       res.status);
    if (df_http_check(&res, "put an object through Terrakube's API", err) < 0)
        return -1;
    a->is_admitted = true;
    return 0;
}

/* A tool that cannot be kept is downloaded again. */
static int put(struct df_terrakube_store *s, const struct df_terrakube_item *i, const void *bytes,
               size_t n, struct df_err *err)
{
    if (i->what == DF_TERRAKUBE_OBJECT_BINARY)
        return 0;
    DF_FREE char *url = url_of(by_api_of(s), i);
    return url ? send_bytes(by_api_of(s), i, url, bytes, n, err) : df_fail_oom(err);
}

static int get(struct df_terrakube_store *s, const struct df_terrakube_item *i, int fd,
               struct df_err *err)
{
    struct by_api *a = by_api_of(s);
    if (i->what != DF_TERRAKUBE_OBJECT_PLAN)
        return df_fail(err, DF_ERR_NOT_FOUND, "Terrakube's API gives back plans only");
    DF_FREE char *url = url_of(a, i);
    const struct df_download d = {url, fd, DF_LIMIT_TERRAKUBE_OBJECT, a->stop};
    return df_check_alloc(url, err) < 0 || add_token(a, err) < 0
               ? -1
               : df_download(a->http, &d, NULL, err);
}

static char *place(struct df_terrakube_store *s, const struct df_terrakube_item *i)
{
    return url_of(by_api_of(s), i);
}

static void close_api(struct df_terrakube_store *s)
{
    df_http_free(by_api_of(s)->http);
    free(s);
}

static const struct df_terrakube_store_ops ops = {close_api, put, get, place,
                                                  "/tfstate/v1/organization/"};

int df_terrakube_store_api(const struct df_terrakube_settings *s, const volatile bool *stop,
                           struct df_terrakube_store **ret, struct df_err *err)
{
    const struct df_http_options o = {.ca_pem = s->ca_pem};
    struct by_api *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    *a = (struct by_api){.store = {&ops}, .settings = s, .stop = stop};
    if (df_http_new(&o, &a->http, err) < 0) {
        close_api(&a->store);
        return -1;
    }
    *ret = &a->store;
    return 0;
}
