#include "common/kube/client.h"
#include "common/kube/proto.h"

enum { MAX_WAIT_S = 300 }; /* a longer Retry-After is treated as a mistake */

static enum df_err_class class_of(int code)
{
    switch (code) {
    case 401:
    case 403:
        return DF_ERR_DENIED;
    case 404:
        return DF_ERR_NOT_FOUND;
    case 409:
    case 410:
    case 412:
        return DF_ERR_CONFLICT;
    case 413:
        return DF_ERR_LIMIT;
    case 408:
    case 429:
        return DF_ERR_RETRY;
    default:
        return code >= 500 ? DF_ERR_RETRY : DF_ERR_USER;
    }
}

static const char *reason_of(int code, const cJSON *status)
{
    const char *said = df_json_str(status, "reason");
    if (code == 410)
        return "Expired"; /* the server also says Gone, depending on where it noticed */
    return said ? said : "";
}

/* Adds the causes that the message does not contain yet. */
static void add_causes(struct df_buf *text, const cJSON *status, bool secret)
{
    const cJSON *cause;
    cJSON_ArrayForEach (cause, df_json_at(status, "details.causes")) {
        const char *field = df_json_str(cause, "field"), *what = df_json_str(cause, "message");
        if (!field || strstr(df_buf_str(text), field))
            continue;
        (void)df_buf_addf(text, "; %s%s%s", field, secret ? "" : ": ", secret || !what ? "" : what);
    }
}

static int wait_of(const cJSON *status, int header_s)
{
    int64_t said = header_s > 0 ? header_s : df_json_int(status, "details.retryAfterSeconds", 0);
    return said <= 0 ? 0 : said > MAX_WAIT_S ? MAX_WAIT_S : (int)said;
}

static int fail_status(const char *what, int code, const cJSON *status, int header_s, bool secret,
                       struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(4 * DF_KIB);
    const char *said = df_json_str(status, "message");
    /* The server's message about a bad Secret quotes its values. */
    bool hide = secret && (code == 400 || code == 422);
    (void)df_buf_adds(&text, hide || !said ? "the server refused it" : said);
    add_causes(&text, status, hide);
    (void)df_fail_reason(err, class_of(code), reason_of(code, status), "%s%s%s (HTTP %d%s%s)",
                         what ? what : "", what ? ": " : "", df_buf_str(&text), code,
                         *reason_of(code, status) ? " " : "", reason_of(code, status));
    if (err && err->cls == DF_ERR_RETRY)
        err->retry_after_s = wait_of(status, header_s);
    return -1;
}

int df_kube_fail_status(const char *what, const cJSON *status, bool secret, struct df_err *err)
{
    return fail_status(what, (int)df_json_int(status, "code", 500), status, 0, secret, err);
}

/* The answer has no Status: it came from a proxy, or the server does not know the path. Only a
 * Status proves that an object does not exist. */
static int fail_foreign(const struct df_http_response *res, struct df_err *err)
{
    int result = df_http_check(res, "the server", err);
    if (!err || result == 0)
        return result;
    err->cls = res->status == 404 ? DF_ERR_RETRY : class_of(res->status);
    (void)df_err_reason(err, res->status == 404 ? "NotServed" : reason_of(res->status, NULL));
    if (err->cls == DF_ERR_RETRY)
        err->retry_after_s = wait_of(NULL, res->retry_after_s);
    return -1;
}

static int read_status(const struct df_buf *body, cJSON **ret)
{
    if (df_proto_is_object(body->data, body->len))
        return df_proto_read_object(df_proto_status, body->data, body->len, ret, NULL);
    if (df_json_parse(df_buf_str(body), body->len, ret, NULL) < 0)
        return -1;
    return df_streq(df_json_str(*ret, "kind"), "Status") ? 0 : -1;
}

int df_kube_check(const struct df_kube_request *r, const struct df_http_response *res,
                  struct df_err *err)
{
    if (res->status < 300)
        return 0;
    if (res->status < 400)
        return df_fail(err, DF_ERR_USER, "the server redirects to %s: is this the API server?",
                       res->location);
    DF_JSON cJSON *status = NULL;
    bool secret = r->at && r->at->resource && df_streq(r->at->resource->plural, "secrets");
    if (read_status(&res->body, &status) < 0)
        return fail_foreign(res, err);
    return fail_status(NULL, res->status, status, res->retry_after_s, secret, err);
}

bool df_kube_is_expired(const struct df_err *err)
{
    return err->cls == DF_ERR_CONFLICT && df_streq(err->reason, "Expired");
}
