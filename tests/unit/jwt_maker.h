/*
 * jwt_maker.h - an issuer for tests: keys, their JWK set, and tokens signed with them. Include it
 * before everything that brings banned.h (OpenSSL's headers name a parameter `rand`).
 */
#ifndef DF_TEST_JWT_MAKER_H
#define DF_TEST_JWT_MAKER_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"

struct signer {
    EVP_PKEY *key;
    const char *kid, *alg;
};

static inline char *b64(const void *bytes, size_t n)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    if (df_base64_encode(bytes, n, true, &b, NULL) < 0)
        DF_BUG("base64");
    return df_buf_take(&b);
}

/* JSON with ' for ". The caller frees. */
static inline char *quoted(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return copy;
}

static inline char *number_b64(const EVP_PKEY *key, const char *param, int width)
{
    BIGNUM *n = NULL;
    unsigned char bytes[1024];
    if (EVP_PKEY_get_bn_param(key, param, &n) != 1)
        DF_BUG("parameter %s", param);
    int len = width ? BN_bn2binpad(n, bytes, width) : BN_bn2bin(n, bytes);
    BN_free(n);
    return b64(bytes, (size_t)len);
}

/* {"kty": ..., "kid": ...}. The caller frees. */
static inline char *jwk_of(const struct signer *s)
{
    if (EVP_PKEY_is_a(s->key, "RSA")) {
        DF_FREE char *n = number_b64(s->key, OSSL_PKEY_PARAM_RSA_N, 0);
        DF_FREE char *e = number_b64(s->key, OSSL_PKEY_PARAM_RSA_E, 0);
        return df_strf("{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"RS256\",\"kid\":\"%s\","
                       "\"n\":\"%s\",\"e\":\"%s\"}",
                       s->kid, n, e);
    }
    if (EVP_PKEY_is_a(s->key, "ED25519")) {
        unsigned char raw[32];
        size_t n = sizeof(raw);
        if (EVP_PKEY_get_raw_public_key(s->key, raw, &n) != 1)
            DF_BUG("no public key");
        DF_FREE char *x = b64(raw, n);
        return df_strf("{\"kty\":\"OKP\",\"kid\":\"%s\",\"crv\":\"Ed25519\",\"x\":\"%s\"}", s->kid,
                       x);
    }
    bool p256 = EVP_PKEY_get_bits(s->key) == 256;
    DF_FREE char *x = number_b64(s->key, OSSL_PKEY_PARAM_EC_PUB_X, p256 ? 32 : 48);
    DF_FREE char *y = number_b64(s->key, OSSL_PKEY_PARAM_EC_PUB_Y, p256 ? 32 : 48);
    return df_strf("{\"kty\":\"EC\",\"use\":\"sig\",\"kid\":\"%s\",\"crv\":\"%s\",\"x\":\"%s\","
                   "\"y\":\"%s\"}",
                   s->kid, p256 ? "P-256" : "P-384", x, y);
}

/* The two numbers of an ECDSA signature, each of 32 bytes, as JOSE wants them. */
static inline char *raw_ecdsa(const unsigned char *der, size_t n)
{
    unsigned char raw[64];
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
    (void)BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, 32);
    (void)BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + 32, 32);
    ECDSA_SIG_free(sig);
    return b64(raw, sizeof(raw));
}

/* The signature of a text, as the third part of a token. The caller frees. */
static inline char *signature_of(const struct signer *s, const char *text)
{
    unsigned char der[1024];
    size_t n = sizeof(der);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (EVP_DigestSignInit(c, NULL, df_streq(s->alg, "EdDSA") ? NULL : EVP_sha256(), NULL,
                           s->key) != 1 ||
        EVP_DigestSign(c, der, &n, (const unsigned char *)text, strlen(text)) != 1)
        DF_BUG("sign");
    EVP_MD_CTX_free(c);
    bool jose = df_streq(s->alg, "ES256") && EVP_PKEY_get_bits(s->key) == 256;
    return jose ? raw_ecdsa(der, n) : b64(der, n);
}

/* A token of header and payload as they stand (with ' for "). The caller frees. */
static inline char *token_of(const struct signer *s, const char *header, const char *payload)
{
    DF_FREE char *h = quoted(header);
    DF_FREE char *p = quoted(payload);
    DF_FREE char *h64 = b64(h, strlen(h));
    DF_FREE char *p64 = b64(p, strlen(p));
    DF_FREE char *text = df_strf("%s.%s", h64, p64);
    DF_FREE char *signature = signature_of(s, text);
    return df_strf("%s.%s", text, signature);
}

/* The usual header of this signer. */
static inline char *sign(const struct signer *s, const char *payload)
{
    DF_FREE char *header = df_strf("{'alg':'%s','kid':'%s'}", s->alg, s->kid);
    return token_of(s, header, payload);
}

static inline char *set_of(const struct signer *const *signers, size_t n)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    for (size_t i = 0; i < n; i++) {
        DF_FREE char *one = jwk_of(signers[i]);
        (void)df_buf_addf(&b, "%s%s", i ? "," : "{\"keys\":[", one);
    }
    (void)df_buf_adds(&b, "]}");
    return df_buf_take(&b);
}

#endif
