/*
 * target.c - what a URL means for safety: its origin, whether it is https, whether it leads to this
 * machine or its link. df_http_target_redirect() decides by that which redirects are followed, and
 * whether the target may still get the credentials (`trusted`): only at the origin of the first
 * URL.
 */
#include "common/http/target.h"

#include <arpa/inet.h>

#include "common/base/buf.h"
#include "common/http/http.h"

void df_http_target_free(struct df_http_target *t)
{
    curl_url_cleanup(t->url);
    free(t->shown);
    free(t->origin);
    *t = (struct df_http_target){0};
}

static void cleanup_curl(char **s)
{
    curl_free(*s);
}
#define CURL_STR DF_CLEANUP(cleanup_curl)

/* Reads a host that is an address, also "[::1]"; an IPv4 address becomes ::ffff:a.b.c.d. False for
 * a name. */
static bool read_address(const char *host, struct in6_addr *ret)
{
    char text[INET6_ADDRSTRLEN + sizeof("::ffff:")];
    if (*host == '[')
        (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
    else
        (void)snprintf(text, sizeof(text), "::ffff:%s", host);
    return inet_pton(AF_INET6, text, ret) == 1;
}

/* The unspecified addresses are connected to this machine, too. */
static bool is_loopback(const char *host)
{
    struct in6_addr a;
    if (!read_address(host, &a))
        return strcasecmp(host, "localhost") == 0;
    if (IN6_IS_ADDR_V4MAPPED(&a))
        return a.s6_addr[12] == 127 || a.s6_addr[12] == 0;
    return IN6_IS_ADDR_LOOPBACK(&a) || IN6_IS_ADDR_UNSPECIFIED(&a);
}

/* Addresses of one link: of the metadata services of clouds (fd00:ec2::254 is one of them), too. */
static bool is_link_local(const char *host)
{
    static const unsigned char ec2[] = {0xfd, 0x00, 0x0e, 0xc2};
    struct in6_addr a;
    if (!read_address(host, &a))
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&a))
        return a.s6_addr[12] == 169 && a.s6_addr[13] == 254;
    return IN6_IS_ADDR_LINKLOCAL(&a) || memcmp(a.s6_addr, ec2, sizeof(ec2)) == 0;
}

static int set_shown(struct df_http_target *t, struct df_err *err)
{
    CURLU *plain = curl_url_dup(t->url);
    CURL_STR char *text = NULL;
    if (plain && curl_url_set(plain, CURLUPART_QUERY, NULL, 0) == CURLUE_OK &&
        curl_url_set(plain, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK)
        (void)curl_url_get(plain, CURLUPART_URL, &text, 0);
    curl_url_cleanup(plain);
    return text ? df_str_set(&t->shown, text, err) : df_fail_oom(err);
}

/* Reads the parts of t->url into t; the caller owns *ret_origin. */
static int read_parts(struct df_http_target *t, char **ret_origin, struct df_err *err)
{
    CURL_STR char *scheme = NULL;
    CURL_STR char *host = NULL;
    CURL_STR char *port = NULL;
    if (curl_url_get(t->url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return df_fail_oom(err);
    /* file:// has neither host nor port. */
    (void)curl_url_get(t->url, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(t->url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    *ret_origin = df_strf("%s://%s:%s", scheme, host ? host : "", port ? port : "");
    if (!*ret_origin)
        return df_fail_oom(err);
    for (char *c = *ret_origin; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    t->secure = df_streq(scheme, "https");
    t->loopback = host && is_loopback(host);
    t->link_local = host && is_link_local(host);
    return 0;
}

static int fail_curl_url(CURLUcode rc, const char *url, struct df_err *err)
{
    switch (rc) {
    case CURLUE_OUT_OF_MEMORY:
        return df_fail_oom(err);
    case CURLUE_USER_NOT_ALLOWED:
        /* The message omits the URL, because it contains a password. */
        return df_fail(err, DF_ERR_USER,
                       "a URL must not carry a user name or password; give them as credentials");
    case CURLUE_UNSUPPORTED_SCHEME:
        return df_fail(err, DF_ERR_USER, "\"%s\": only http and https are spoken", url);
    default:
        return df_fail(err, DF_ERR_USER, "\"%s\" is not a URL: %s", url, curl_url_strerror(rc));
    }
}

static bool is_scheme(CURLU *url, const char *wanted)
{
    CURL_STR char *scheme = NULL;
    return curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && df_streq(scheme, wanted);
}

int df_http_target_parse(const char *url, bool allow_file, struct df_http_target *ret,
                         struct df_err *err)
{
    DF_HTTP_TARGET struct df_http_target t = {.url = curl_url()};
    if (!t.url)
        return df_fail_oom(err);
    CURLUcode rc =
        url ? curl_url_set(t.url, CURLUPART_URL, url, CURLU_DISALLOW_USER) : CURLUE_OUT_OF_MEMORY;
    if (rc == CURLUE_OK && !allow_file && is_scheme(t.url, "file"))
        rc = CURLUE_UNSUPPORTED_SCHEME;
    if (rc != CURLUE_OK)
        return fail_curl_url(rc, url, err);
    if (read_parts(&t, &t.origin, err) < 0 || set_shown(&t, err) < 0)
        return -1;
    t.trusted = true;
    *ret = t;
    t = (struct df_http_target){0};
    return 0;
}

int df_http_target_redirect(struct df_http_target *t, const char *location, struct df_err *err)
{
    bool was_secure = t->secure, was_loopback = t->loopback;
    CURLUcode rc = curl_url_set(t->url, CURLUPART_URL, location, CURLU_DISALLOW_USER);
    if (rc == CURLUE_OK && is_scheme(t->url, "file"))
        rc = CURLUE_UNSUPPORTED_SCHEME;
    if (rc != CURLUE_OK) {
        (void)fail_curl_url(rc, location, err);
        return df_err_wrap(err, "redirect of %s", t->shown);
    }
    DF_FREE char *origin = NULL;
    if (read_parts(t, &origin, err) < 0)
        return -1;
    if (was_secure && !t->secure)
        return df_fail(err, DF_ERR_USER, "redirect of %s: from https to http is refused", t->shown);
    t->trusted = df_streq(origin, t->origin);
    if ((t->loopback && !was_loopback) || (t->link_local && !t->trusted))
        return df_fail(err, DF_ERR_USER,
                       "redirect of %s: to an address of this machine or its link is refused",
                       t->shown);
    return set_shown(t, err);
}

bool df_url_same_origin(const char *one, const char *other)
{
    DF_HTTP_TARGET struct df_http_target a = {0}, b = {0};
    return df_http_target_parse(one, false, &a, NULL) == 0 &&
           df_http_target_parse(other, false, &b, NULL) == 0 && df_streq(a.origin, b.origin);
}

bool df_url_is_safe(const char *url)
{
    DF_HTTP_TARGET struct df_http_target t = {0};
    return df_http_target_parse(url, false, &t, NULL) == 0 && (t.secure || t.loopback);
}
