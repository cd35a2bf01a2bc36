/*
 * jwt.h - signed tokens (RFC 7519) of RS256, ES256 and EdDSA, verified offline against a set of
 * public keys (RFC 7517), or signed; and those of a secret that both sides have. Pure: no clock, no
 * network; jwks.h brings the keys.
 *
 * The algorithm is bound to the kind of the key that the token names, or to the secret: `none`, an
 * HMAC where keys are public, and a key of another kind or curve are refused, whatever the
 * signature. Header members that refer to keys (jwk, jku, x5u) are ignored. Refusals have class
 * DENIED and one of these reasons:
 *   TokenTooLarge       longer than DF_LIMIT_TOKEN
 *   TokenMalformed      not three parts of base64url, not JSON, a claim of the wrong type, `crit`
 *   TokenDuplicateClaim the header or the payload has a duplicate member
 *   TokenAlgorithm      none of RS256, ES256, EdDSA; or the key is not for that algorithm
 *   TokenKeyUnknown     the set has no key with that kid (fetching the set again may help)
 *   TokenSignature      the signature does not match the key
 *   TokenIssuer TokenAudience TokenExpired TokenNotYetValid
 * Messages never contain the token. Thread rule: any thread; a key set may be read by several.
 */
#ifndef DF_CRYPTO_JWT_H
#define DF_CRYPTO_JWT_H

#include "common/json/json.h"

#define DF_JWT_LEEWAY_S 30 /* tolerated difference between the clocks of two machines */

struct df_jwk_set; /* opaque */

/* Reads a JWK set: at most DF_LIMIT_JWKS bytes and DF_LIMIT_JWKS_KEYS keys. Keys that are not for
 * signatures are left out. A key that is not supported (another curve, a short modulus, damaged)
 * keeps its kid, and a token that names it is refused with the cause. USER if the text is not a key
 * set or has no usable key. */
int df_jwk_set_parse(const char *text, size_t n, struct df_jwk_set **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_jwk_set_free(struct df_jwk_set *set); /* NULL is fine */

/* The expected claims. Borrowed. */
struct df_jwt_expect {
    const char *issuer;
    const char *audience; /* one of the token's audiences */
    int64_t now_us;       /* real time */
};

/* True if the text has the form of a signed token: three parts separated by dots. Verifies nothing.
 */
bool df_jwt_is(const char *token);

/* Decodes the payload without verifying anything: for messages only, never for decisions. *ret:
 * delete with cJSON_Delete(). */
int df_jwt_peek(const char *token, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Checks everything above, then nbf, iat and exp (required) with DF_JWT_LEEWAY_S. *ret: the
 * payload; delete with cJSON_Delete(). */
int df_jwt_verify(const char *token, const struct df_jwk_set *keys, const struct df_jwt_expect *e,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Signs claims (an object) with an RSA key as RS256: the token that OAuth takes for keys of its own
 * (RFC 7523). key_pem: PKCS#8. kid: NULL: none. Adds the token to out, which the caller wipes. USER
 * if it is not an RSA key. */
int df_jwt_sign(const cJSON *claims, const char *key_pem, const char *kid, struct df_buf *out,
                struct df_err *err) DF_MUST_CHECK;

/* The same two for a shared secret. Signed as HS256; HS256, HS384 and HS512 are taken, because some
 * issuers choose by the length of their secret. The caller has checked that it is long enough. */
int df_jwt_verify_secret(const char *token, const void *secret, size_t secret_len,
                         const struct df_jwt_expect *e, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;
int df_jwt_sign_secret(const cJSON *claims, const void *secret, size_t secret_len,
                       struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
