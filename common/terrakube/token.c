#include "common/terrakube/token.h"

#include "common/crypto/crypto.h"
#include "common/crypto/jwt.h"

#define CLIENT "TerrakubeInternal"
#define API "TERRAKUBE_INTERNAL"
#define LEAST_SECRET ((size_t)32) /* of HS256; Java refuses shorter ones, too */

static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Adds the text in the URL alphabet, without padding and white space, and with the bits of its last
 * digit that belong to no byte cleared: Java's decoders do not look at them, and secrets that
 * somebody typed have some. */
static void add_plain_digits(const char *secret, struct df_buf *out)
{
    for (const char *p = secret; *p; p++)
        if (!strchr("= \t\r\n", *p))
            (void)df_buf_addc(out, *p == '+' ? '-' : *p == '/' ? '_' : *p);
    size_t rest = out->len % 4;
    char *last = rest > 1 && !out->failed ? out->data + out->len - 1 : NULL;
    const char *digit = last ? strchr(url_alphabet, *last) : NULL;
    if (digit)
        *last = url_alphabet[(digit - url_alphabet) & (rest == 2 ? 0x30 : 0x3c)];
}

static int decode_secret(const char *secret, struct df_buf *ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf digits = DF_BUF_INIT(DF_LIMIT_TOKEN);
    struct df_err why = {0};
    add_plain_digits(secret, &digits);
    if (df_buf_check(&digits, err) < 0)
        return -1;
    if (df_base64_decode(df_buf_str(&digits), digits.len, true, ret, &why) < 0)
        return why.cls == DF_ERR_USER
                   ? df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                                    "InternalSecret is not base64: it must be the one of "
                                    "Terrakube's API")
                   : df_err_pass(err, &why);
    return ret->len >= LEAST_SECRET
               ? 0
               : df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                                "InternalSecret has %zu bytes; HS256 needs 32: `openssl rand "
                                "-base64 32` makes one, for the API and its executors",
                                ret->len);
}

static int add_claims(cJSON *c, const char *workspace, int64_t now_s, int64_t life_s,
                      struct df_err *err)
{
    return df_json_put(c, err, DF_STR("iss", CLIENT), DF_STR("sub", CLIENT " (TOKEN)"),
                       DF_STR("aud", CLIENT), DF_STR("email", "no-reply@terrakube.io"),
                       DF_BOOL("email_verified", true), DF_STR("name", CLIENT " Client"),
                       DF_STR("workspaceId", workspace), DF_NUM("iat", now_s),
                       DF_NUM("exp", now_s + life_s));
}

int df_terrakube_token_make(const char *secret, const char *workspace, int64_t now_us,
                            int64_t life_s, struct df_buf *out, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_JSON cJSON *claims = cJSON_CreateObject();
    if (df_check_alloc(claims, err) < 0 || decode_secret(secret, &key, err) < 0 ||
        add_claims(claims, workspace, now_us / 1000000, life_s, err) < 0)
        return -1;
    return df_jwt_sign_secret(claims, key.data, key.len, out, err);
}

int df_terrakube_token_check(const char *secret, const char *token, int64_t now_us,
                             struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_LIMIT_TOKEN);
    const struct df_jwt_expect expected = {.issuer = API, .audience = API, .now_us = now_us};
    DF_JSON cJSON *claims = NULL;
    return decode_secret(secret, &key, err) < 0
               ? -1
               : df_jwt_verify_secret(token, key.data, key.len, &expected, &claims, err);
}
