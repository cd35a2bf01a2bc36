/*
 * What an answer says beyond its body, and URLs: first the failure of a status, then parts of a
 * URL, then times. Each function stands for itself.
 */
#include "common/http/http.h"

#include <time.h>

#include "common/base/clock.h"
#include "common/json/json.h"

static enum df_err_class class_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
        return DF_ERR_DENIED;
    case 404:
    case 410:
        return DF_ERR_NOT_FOUND;
    case 409:
    case 412:
    case 423:
    case 428:
        return DF_ERR_CONFLICT;
    case 413:
    case 507:
        return DF_ERR_LIMIT;
    case 408:
    case 425:
    case 429:
    case 502:
    case 503:
    case 504:
        return DF_ERR_RETRY;
    default:
        return status < 500 ? DF_ERR_USER : DF_ERR_SYSTEM;
    }
}

/* Returns the last segment of a problem's type ("https://dayfly.dev/problems/AlreadyClaimed") if it
 * is a single word. */
static const char *type_word(const char *type)
{
    if (!type || df_streq(type, "about:blank"))
        return "";
    const char *word = type;
    for (const char *p = type; *p; p++)
        if (*p == '/' || *p == ':' || *p == '#')
            word = p + 1;
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
    return word[n] ? "" : word;
}

static int fail_problem(const struct df_http_response *r, const char *what, const cJSON *problem,
                        struct df_err *err)
{
    const char *title = df_json_str(problem, "title"), *detail = df_json_str(problem, "detail");
    const char *both = title && detail ? ": " : "";
    if (!title && !detail)
        title = "failed";
    return df_fail_reason(err, class_of_status(r->status), type_word(df_json_str(problem, "type")),
                          "%s: %s%s%s (HTTP %d)", what, title ? title : "", both,
                          detail ? detail : "", r->status);
}

enum { FIRST_LINE = 200 };

/* Copies the first line of a text body, without control characters. */
static void first_line(const struct df_http_response *r, char to[FIRST_LINE + 1])
{
    size_t n = 0;
    bool text = df_starts_with(r->content_type, "text/plain");
    for (const char *p = df_buf_str(&r->body); text && *p && *p != '\n' && n < FIRST_LINE; p++)
        to[n++] = (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p;
    to[n] = '\0';
}

int df_http_check(const struct df_http_response *r, const char *what, struct df_err *err)
{
    if (r->status < 400)
        return 0;
    DF_JSON cJSON *problem = NULL;
    if (r->is_foreign)
        return df_fail(err, class_of_status(r->status),
                       "%s: HTTP %d, after a redirect to another host or port", what, r->status);
    if (df_starts_with(r->content_type, "application/problem+json") &&
        df_json_parse(df_buf_str(&r->body), r->body.len, &problem, NULL) == 0)
        return fail_problem(r, what, problem, err);
    char line[FIRST_LINE + 1];
    first_line(r, line);
    return df_fail(err, class_of_status(r->status), "%s: HTTP %d%s%s", what, r->status,
                   line[0] ? ": " : "", line);
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

char *df_url_host(const char *url)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    return *host == '[' ? strndup(host + 1, strcspn(host + 1, "]"))
                        : strndup(host, strcspn(host, ":/"));
}

void df_url_add_escaped(struct df_buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (is_unreserved(c))
            (void)df_buf_addc(out, *s);
        else
            (void)df_buf_addf(out, "%%%02X", c);
    }
}

char *df_url_escape(const char *s)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(3 * strlen(s));
    df_url_add_escaped(&b, s);
    return df_buf_take(&b);
}

void df_url_add_parameter(struct df_buf *url, const char *name, const char *value)
{
    (void)df_buf_addf(url, "%c%s=", strchr(df_buf_str(url), '?') ? '&' : '?', name);
    df_url_add_escaped(url, value);
}

int df_http_date(const char *text, int64_t *ret_real_us)
{
    struct tm t = {0};
    if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &t))
        return -1;
    *ret_real_us = (int64_t)timegm(&t) * 1000000;
    return 0;
}

int df_http_time(const struct df_http_response *r, int64_t *ret_real_us)
{
    return df_http_date(r->date, ret_real_us);
}

/* A Date has the precision of a second and is as old as the answer took. Less than this is no
 * difference, and an answer that took longer says nothing. */
#define CLOCK_SLACK_US INT64_C(5000000)

int df_http_clock_ahead(const struct df_http_response *r, int64_t from_us, int64_t *ret_us)
{
    int64_t theirs_us = 0, now_us = df_real_us();
    if (now_us - from_us > CLOCK_SLACK_US / 2 || df_http_time(r, &theirs_us) < 0)
        return -1;
    *ret_us = llabs(theirs_us - now_us) > CLOCK_SLACK_US ? theirs_us - now_us : 0;
    return 0;
}
