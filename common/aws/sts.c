/* First the answers, then a request, then the actions. */
#include "common/aws/sts.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/http/http.h"
#include "common/xml/xml.h"

enum { STS_MS = 10000 };

/* ---- answers ---- */

/* What an answer has, whichever it is. */
struct answer {
    struct df_aws_keys keys;
    char *arn;
    char code[64], message[512]; /* of a refusal */
};

static void answer_wipe(struct answer *a)
{
    df_aws_keys_wipe(&a->keys);
    free(a->arn);
}
#define ANSWER DF_CLEANUP(answer_wipe) struct answer

static int take_element(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct answer *a = arg;
    if (df_ends_with(path, "Result/Credentials/AccessKeyId"))
        return df_str_set(&a->keys.access_key, text, err);
    if (df_ends_with(path, "Result/Credentials/SecretAccessKey"))
        return df_str_set(&a->keys.secret_key, text, err);
    if (df_ends_with(path, "Result/Credentials/SessionToken"))
        return df_str_set(&a->keys.token, text, err);
    if (df_ends_with(path, "Result/Credentials/Expiration"))
        return df_time_parse(text, &a->keys.expires_us, err);
    if (df_streq(path, "GetCallerIdentityResponse/GetCallerIdentityResult/Arn"))
        return df_str_set(&a->arn, text, err);
    if (df_streq(path, "ErrorResponse/Error/Code"))
        df_copy(a->code, sizeof(a->code), text);
    else if (df_streq(path, "ErrorResponse/Error/Message"))
        df_copy(a->message, sizeof(a->message), text);
    return 0;
}

static bool is_temporary(const struct answer *a, int status)
{
    return status == 429 || status >= 500 || df_streq(a->code, "Throttling");
}

static int read_answer(const char *action, const struct df_http_response *res, struct answer *a,
                       struct df_err *err)
{
    const struct df_xml_sink sink = {take_element, a};
    struct df_err unread = {0};
    int result = df_xml_read(df_buf_str(&res->body), res->body.len, &sink, &unread);
    if (res->status < 400)
        return result < 0 ? df_err_pass(err, &unread) : 0;
    /* A body that is not XML is some proxy's page: the status has to do. */
    return df_fail(err, is_temporary(a, res->status) ? DF_ERR_RETRY : DF_ERR_DENIED,
                   "STS %s: HTTP %d%s%s%s%s", action, res->status, *a->code ? " " : "", a->code,
                   *a->message ? ": " : "", a->message);
}

/* ---- a request ---- */

bool df_aws_region_is_good(const char *text)
{
    size_t n = strlen(text);
    return n >= 1 && n <= 32 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static int sign(struct df_http *h, const struct df_sts *sts, struct df_err *err)
{
    const struct df_aws_keys *k = sts->keys;
    if (!k)
        return 0;
    const struct df_http_aws aws = {k->access_key, k->secret_key, k->token, sts->region, "sts"};
    return df_http_set_aws(h, &aws, err);
}

static int call(const struct df_sts *sts, const char *action, const struct df_buf *arguments,
                struct answer *ret, struct df_err *err)
{
    const struct df_http_options options = {0};
    const char *endpoint = getenv("AWS_ENDPOINT_URL_STS");
    DF_CLEANUP(df_buf_wipe) struct df_buf body = DF_BUF_INIT(8 * DF_LIMIT_AWS_TOKEN);
    DF_FREE char *regional = df_strf("https://sts.%s.amazonaws.com", sts->region);
    DF_HTTP struct df_http *h = NULL;
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (!regional)
        return df_fail_oom(err);
    if (!df_aws_region_is_good(sts->region))
        return df_fail(err, DF_ERR_USER,
                       "\"%.64s\" is not a region of AWS: it has 1 to 32 of a-z, 0-9 and -",
                       sts->region);
    (void)df_buf_addf(&body, "Action=%s&Version=2011-06-15%s", action, df_buf_str(arguments));
    if (df_buf_check(&body, err) < 0 || df_http_new(&options, &h, err) < 0 || sign(h, sts, err) < 0)
        return -1;
    struct df_http_request req =
        DF_HTTP_REQUEST("POST", df_str_empty(endpoint) ? regional : endpoint);
    req.content_type = "application/x-www-form-urlencoded";
    req.body = body.data;
    req.body_len = body.len;
    req.timeout_ms = STS_MS;
    if (df_http_send(h, &req, &res, err) < 0)
        return -1;
    int result = read_answer(action, &res, ret, err);
    if (res.body.data)
        explicit_bzero(res.body.data, res.body.len);
    return result;
}

static int add_argument(struct df_buf *to, const char *name, const char *value, struct df_err *err)
{
    DF_FREE char *escaped = value ? df_url_escape(value) : NULL;
    if (!value)
        return 0;
    if (!escaped)
        return df_fail_oom(err);
    (void)df_buf_addf(to, "&%s=%s", name, escaped);
    return df_buf_check(to, err);
}

/* ---- the actions ---- */

int df_sts_keys(const struct df_sts *sts, const char *action, const struct df_buf *arguments,
                struct df_aws_keys *ret, struct df_err *err)
{
    ANSWER a = {0};
    if (call(sts, action, arguments, &a, err) < 0)
        return -1;
    if (df_str_empty(a.keys.access_key) || df_str_empty(a.keys.secret_key))
        return df_fail(err, DF_ERR_DENIED, "STS %s: the answer has no keys", action);
    *ret = a.keys;
    a.keys = (struct df_aws_keys){0};
    return 0;
}

int df_sts_assume_role(const struct df_sts *sts, const struct df_aws_role *role,
                       struct df_aws_keys *ret, struct df_err *err)
{
    DF_BUF struct df_buf arguments = DF_BUF_INIT(4 * DF_LIMIT_AWS_TOKEN);
    char seconds[24];
    (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)role->duration_s);
    if (add_argument(&arguments, "RoleArn", role->arn, err) < 0 ||
        add_argument(&arguments, "RoleSessionName", role->session, err) < 0 ||
        add_argument(&arguments, "DurationSeconds", seconds, err) < 0 ||
        add_argument(&arguments, "ExternalId", role->external_id, err) < 0 ||
        add_argument(&arguments, "Policy", role->policy, err) < 0)
        return -1;
    return df_sts_keys(sts, "AssumeRole", &arguments, ret, err);
}

int df_sts_caller(const struct df_sts *sts, char **ret, struct df_err *err)
{
    const struct df_buf none = DF_BUF_INIT(0);
    ANSWER a = {0};
    if (call(sts, "GetCallerIdentity", &none, &a, err) < 0)
        return -1;
    if (df_str_empty(a.arn))
        return df_fail(err, DF_ERR_DENIED, "STS GetCallerIdentity: the answer has no ARN");
    *ret = DF_TAKE(a.arn);
    return 0;
}
