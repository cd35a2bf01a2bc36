/*
 * jwt.c - df_jwt_verify() at the end of the file splits the token, checks its signature with a key
 * of the set, then its claims: issuer, audience and times. Every failure has a reason of its own.
 */
#include "common/crypto/jwk.h"

#include <math.h>

#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>

#include "common/base/limits.h"
#include "common/crypto/crypto.h"

#define ES256_LEN ((size_t)64) /* r and s, 32 bytes each */

/* The parts of a token. All are owned, except signed_part. */
struct parts {
    const char *signed_part; /* header.payload, borrowed */
    size_t signed_len;
    cJSON *header, *payload;
    struct df_buf signature;
};

static void free_parts(struct parts *p)
{
    cJSON_Delete(p->header);
    cJSON_Delete(p->payload);
    df_buf_free(&p->signature);
}

static int fail_malformed(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_DENIED, "TokenMalformed", "the token is malformed: %s", why);
}

bool df_jwt_is(const char *token)
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    return second && !strchr(second + 1, '.');
}

/* ---- parts ---- */

/* A duplicate member has its own reason; any other JSON error makes the token malformed. */
static int fail_json(const struct df_buf *text, const char *what, const struct df_err *why,
                     struct df_err *err)
{
    if (why->cls != DF_ERR_USER) /* not an error of the token */
        return df_err_pass(err, why);
    DF_JSON cJSON *loose = cJSON_ParseWithLength(df_buf_str(text), text->len);
    const char *twice = NULL;
    if (loose && df_json_duplicate_key(loose, &twice, NULL) == 0 && twice)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenDuplicateClaim",
                              "the token's %s has \"%.64s\" twice", what, twice);
    return df_fail_reason(err, DF_ERR_DENIED, "TokenMalformed",
                          "the token is malformed: its %s: %s", what, why->message);
}

static int decode_json(const char *text, size_t n, const char *what, cJSON **ret,
                       struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_TOKEN);
    struct df_err why = {0};
    if (df_base64_decode(text, n, true, &b, &why) < 0)
        return fail_json(&b, what, &why, err);
    DF_JSON cJSON *json = NULL;
    if (df_json_parse(df_buf_str(&b), b.len, &json, &why) < 0)
        return fail_json(&b, what, &why, err);
    if (!cJSON_IsObject(json))
        return fail_malformed(err, "a part is not a JSON object");
    *ret = DF_TAKE(json);
    return 0;
}

static int take_apart(const char *token, struct parts *p, struct df_err *err)
{
    if (strnlen(token, DF_LIMIT_TOKEN + 1) > DF_LIMIT_TOKEN)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenTooLarge",
                              "the token has more than %zu bytes", DF_LIMIT_TOKEN);
    if (!df_jwt_is(token))
        return fail_malformed(err, "it does not have three parts");
    const char *payload = strchr(token, '.') + 1, *signature = strchr(payload, '.') + 1;
    p->signed_part = token;
    p->signed_len = (size_t)(signature - 1 - token);
    p->signature = DF_BUF_INIT(DF_LIMIT_TOKEN);
    if (decode_json(token, (size_t)(payload - 1 - token), "header", &p->header, err) < 0 ||
        decode_json(payload, (size_t)(signature - 1 - payload), "payload", &p->payload, err) < 0)
        return -1;
    struct df_err why = {0};
    if (df_base64_decode(signature, strlen(signature), true, &p->signature, &why) == 0)
        return 0;
    return why.cls == DF_ERR_USER ? fail_malformed(err, "its signature is not base64url")
                                  : df_fail_oom(err);
}

/* ---- the signature ---- */

static int fail_key_unknown(const char *kid, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_DENIED, "TokenKeyUnknown",
                          kid ? "the token is signed with the key \"%.64s\", which the issuer does "
                                "not list"
                              : "the token names no key, and is not signed with the only one that "
                                "its issuer has%s",
                          kid ? kid : "");
}

static int choose_key(const struct parts *p, const struct df_jwk_set *keys,
                      const struct df_jwk **ret, struct df_err *err)
{
    const char *alg = df_json_str(p->header, "alg"), *kid = df_json_str(p->header, "kid");
    enum df_jwk_kind kind = df_jwk_kind_of(alg);
    if (cJSON_GetObjectItemCaseSensitive(p->header, "crit"))
        return fail_malformed(err, "it has critical extensions, and none is known here");
    if (!kid && cJSON_GetObjectItemCaseSensitive(p->header, "kid"))
        return fail_malformed(err, "its key id is not a string");
    if (kind == DF_JWK_UNUSABLE)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenAlgorithm",
                              "the token is signed by \"%.32s\"; " DF_JWK_ALGORITHMS " are taken",
                              alg ? alg : "");
    const struct df_jwk *k = df_jwk_find(keys, kid, kind);
    if (!k)
        return fail_key_unknown(kid, err);
    if (k->kind != kind)
        return df_fail_reason(
            err, DF_ERR_DENIED, "TokenAlgorithm",
            "the token is signed by %s, but its key \"%.64s\" is not for that%s%s", alg, kid,
            k->why[0] ? ": " : "", k->why);
    *ret = k;
    return 0;
}

/* Converts JOSE's two numbers into the DER that OpenSSL expects. The caller frees; NULL if out of
 * memory. */
static unsigned char *ecdsa_der(const struct df_buf *raw, int *ret_len)
{
    const unsigned char *bytes = (const unsigned char *)raw->data;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)ES256_LEN / 2, NULL);
    BIGNUM *s = BN_bin2bn(bytes + ES256_LEN / 2, (int)ES256_LEN / 2, NULL);
    unsigned char *der = NULL;
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1) {
        r = s = NULL;
        *ret_len = i2d_ECDSA_SIG(sig, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return der;
}

static int verify_with_key(const struct df_jwk *k, const struct parts *p, const void *signature,
                           size_t n, struct df_err *err)
{
    const EVP_MD *md = k->kind == DF_JWK_ED25519 ? NULL : EVP_sha256(); /* NULL: it has its own */
    DF_CLEANUP(df_cleanup_md_ctx) EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (!c || EVP_DigestVerifyInit(c, NULL, md, NULL, k->key) != 1)
        return df_fail_ssl(err, "verify the token");
    int good =
        EVP_DigestVerify(c, signature, n, (const unsigned char *)p->signed_part, p->signed_len);
    ERR_clear_error();
    return good == 1 ? 0
                     : df_fail_reason(err, DF_ERR_DENIED, "TokenSignature",
                                      "the token's signature is not its issuer's");
}

static int verify_signature(const struct parts *p, const struct df_jwk *k, struct df_err *err)
{
    if (k->kind != DF_JWK_P256)
        return verify_with_key(k, p, df_buf_str(&p->signature), p->signature.len, err);
    if (p->signature.len != ES256_LEN)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenSignature",
                              "the token's signature is not of 64 bytes");
    int n = 0;
    unsigned char *der = ecdsa_der(&p->signature, &n);
    int result = der && n > 0 ? verify_with_key(k, p, der, (size_t)n, err) : df_fail_oom(err);
    OPENSSL_free(der);
    return result;
}

static int check_signature(const struct parts *p, const struct df_jwk_set *keys, struct df_err *err)
{
    const struct df_jwk *k = NULL;
    struct df_err why = {0};
    const char *kid = df_json_str(p->header, "kid");
    if (choose_key(p, keys, &k, err) < 0)
        return -1;
    if (verify_signature(p, k, &why) == 0)
        return 0;
    /* The issuer may have another key by now. */
    return !kid && df_streq(why.reason, "TokenSignature") ? fail_key_unknown(NULL, err)
                                                          : df_err_pass(err, &why);
}

static int check_secret(const struct parts *p, const void *secret, size_t secret_len,
                        struct df_err *err)
{
    const char *alg = df_json_str(p->header, "alg");
    const EVP_MD *md = df_streq(alg, "HS256")   ? EVP_sha256()
                       : df_streq(alg, "HS384") ? EVP_sha384()
                       : df_streq(alg, "HS512") ? EVP_sha512()
                                                : NULL;
    if (cJSON_GetObjectItemCaseSensitive(p->header, "crit"))
        return fail_malformed(err, "it has critical extensions, and none is known here");
    if (!md)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenAlgorithm",
                              "the token is signed by \"%.32s\"; HS256, HS384 and HS512 are taken",
                              alg ? alg : "");
    unsigned char made[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!HMAC(md, secret, (int)secret_len, (const unsigned char *)p->signed_part, p->signed_len,
              made, &n))
        return df_fail_ssl(err, "verify the token");
    if (p->signature.len == n && CRYPTO_memcmp(made, df_buf_str(&p->signature), n) == 0)
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "TokenSignature",
                          "the token was not signed with this secret");
}

/* ---- the claims ---- */

static bool is_for(const cJSON *payload, const char *audience)
{
    const cJSON *aud = cJSON_GetObjectItemCaseSensitive(payload, "aud");
    return cJSON_IsArray(aud) ? df_json_has_string(aud, audience)
                              : df_streq(cJSON_GetStringValue(aud), audience);
}

/* Reads a NumericDate (RFC 7519): seconds, possibly with a fraction. */
static int get_time(const cJSON *payload, const char *name, double fallback, double *ret,
                    struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(payload, name);
    if (item && (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)))
        return df_fail_reason(err, DF_ERR_DENIED, "TokenMalformed",
                              "the token is malformed: %s is not a time", name);
    *ret = item ? item->valuedouble : fallback;
    return 0;
}

static int check_times(const cJSON *payload, int64_t now_us, struct df_err *err)
{
    double now = (double)now_us / 1e6, exp = 0, nbf = 0, iat = 0;
    if (!cJSON_GetObjectItemCaseSensitive(payload, "exp"))
        return fail_malformed(err, "it has no expiry time");
    if (get_time(payload, "exp", 0, &exp, err) < 0 ||
        get_time(payload, "nbf", now, &nbf, err) < 0 ||
        get_time(payload, "iat", now, &iat, err) < 0)
        return -1;
    if (now >= exp + DF_JWT_LEEWAY_S)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenExpired",
                              "the token expired %.0f seconds ago", now - exp);
    double from = nbf > iat ? nbf : iat;
    if (now < from - DF_JWT_LEEWAY_S)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenNotYetValid",
                              "the token is valid in %.0f seconds: compare the machines' clocks",
                              from - now);
    return 0;
}

static int check_claims(const cJSON *payload, const struct df_jwt_expect *e, struct df_err *err)
{
    const cJSON *iss = cJSON_GetObjectItemCaseSensitive(payload, "iss");
    if (!df_streq(cJSON_GetStringValue(iss), e->issuer))
        return df_fail_reason(err, DF_ERR_DENIED, "TokenIssuer", "the token is not of issuer %s",
                              e->issuer);
    if (!is_for(payload, e->audience))
        return df_fail_reason(err, DF_ERR_DENIED, "TokenAudience", "the token is not for %s",
                              e->audience);
    return check_times(payload, e->now_us, err);
}

int df_jwt_peek(const char *token, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(free_parts) struct parts p = {0};
    if (take_apart(token, &p, err) < 0)
        return -1;
    *ret = DF_TAKE(p.payload);
    return 0;
}

int df_jwt_verify(const char *token, const struct df_jwk_set *keys, const struct df_jwt_expect *e,
                  cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(free_parts) struct parts p = {.signed_part = NULL};
    if (take_apart(token, &p, err) < 0 || check_signature(&p, keys, err) < 0 ||
        check_claims(p.payload, e, err) < 0)
        return -1;
    *ret = DF_TAKE(p.payload);
    return 0;
}

int df_jwt_verify_secret(const char *token, const void *secret, size_t secret_len,
                         const struct df_jwt_expect *e, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(free_parts) struct parts p = {.signed_part = NULL};
    if (take_apart(token, &p, err) < 0 || check_secret(&p, secret, secret_len, err) < 0 ||
        check_claims(p.payload, e, err) < 0)
        return -1;
    *ret = DF_TAKE(p.payload);
    return 0;
}
