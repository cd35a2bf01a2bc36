#include "common/oauth/openid.h"

#include "common/base/limits.h"
#include "common/crypto/jwks.h"

static const char what[] = "ask the OpenID provider";

int df_openid_check_issuer(const char *setting, const char *issuer, struct df_err *err)
{
    if (strpbrk(issuer, "?#@ "))
        return df_fail(err, DF_ERR_USER,
                       "%s: \"%.200s\" must be scheme, host and path, as tokens name it", setting,
                       issuer);
    return df_url_is_safe(issuer)
               ? 0
               : df_fail(err, DF_ERR_USER, "%s: \"%.200s\" must be an https:// URL", setting,
                         issuer);
}

int df_openid_discover(struct df_http *h, const char *issuer, cJSON **ret, struct df_err *err)
{
    size_t n = strlen(issuer);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_JWKS);
    DF_JSON cJSON *doc = NULL;
    DF_FREE char *url =
        df_strf("%.*s" DF_JWKS_DISCOVERY, (int)(n - df_ends_with(issuer, "/")), issuer);
    if (df_check_alloc(url, err) < 0 || df_http_get(h, url, what, &text, err) < 0)
        return -1;
    if (df_json_parse(df_buf_str(&text), text.len, &doc, err) < 0)
        return df_err_wrap(err, "%s", url);
    const char *said = df_json_str(doc, "issuer");
    if (!df_streq(said, issuer))
        return df_fail(err, DF_ERR_USER, "%s says that its issuer is \"%.200s\", not \"%.200s\"",
                       url, said ? said : "", issuer);
    *ret = DF_TAKE(doc);
    return 0;
}

/* What comes in the clear could be anybody's. */
const char *df_openid_url(const cJSON *discovery, const char *name)
{
    const char *url = df_json_str(discovery, name);
    bool in_the_clear = df_starts_with(df_json_str(discovery, "issuer"), "http://");
    return url && (df_starts_with(url, "https://") || (in_the_clear && df_url_is_safe(url))) ? url
                                                                                             : NULL;
}

int df_openid_keys(struct df_http *h, const char *issuer, struct df_buf *ret, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_openid_discover(h, issuer, &doc, err) < 0)
        return -1;
    const char *url = df_openid_url(doc, "jwks_uri");
    if (!url)
        return df_fail(err, DF_ERR_USER, "%.200s: jwks_uri is not an https:// URL", issuer);
    return df_http_get(h, url, what, ret, err);
}
