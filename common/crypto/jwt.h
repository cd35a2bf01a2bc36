/*
 * jwt.h - signed tokens (RFC 7519) of RS256 and ES256, verified offline against a set of public
 * keys (RFC 7517). Pure: no clock, no network; jwks.h brings the keys.
 *
 * The algorithm is bound to the kind of the key that the token names: `none`, every HMAC and a key
 * of another kind or curve are refused whatever the signature is. Header members that point to keys
 * (jwk, jku, x5u) are never looked at. Refusals are class DENIED with a reason of their own:
 *   TokenTooLarge       longer than DF_LIMIT_TOKEN
 *   TokenMalformed      not three parts of base64url, not JSON, a claim of the wrong type, `crit`
 *   TokenDuplicateClaim a member stands twice in the header or the payload
 *   TokenAlgorithm      neither RS256 nor ES256, or the key is not for that algorithm
 *   TokenKeyUnknown     the set has no key of that kid (fetching it anew may help)
 *   TokenSignature      the signature is not of that key
 *   TokenIssuer TokenAudience TokenExpired TokenNotYetValid
 * Messages never hold the token. Thread rule: any thread; a key set may be read by several.
 */
#ifndef DF_CRYPTO_JWT_H
#define DF_CRYPTO_JWT_H

#include "common/json/json.h"

#define DF_JWT_LEEWAY_S 30 /* clocks of two machines differ by so much */

struct df_jwk_set; /* opaque */

/* Reads a JWK set: at most DF_LIMIT_JWKS bytes and DF_LIMIT_JWKS_KEYS keys. Keys that are not for
 * signatures are left out; one that cannot be used here (another curve, a short modulus, damaged)
 * stays in it by its kid, and tokens that name it are told why. Class USER when the text is no key
 * set or has no key that can be used. */
int df_jwk_set_parse(const char *text, size_t n, struct df_jwk_set **ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_jwk_set_free(struct df_jwk_set *set); /* NULL is fine */

/* What a token must say. Borrowed. */
struct df_jwt_expect {
    const char *issuer;
    const char *audience; /* one of the token's audiences */
    int64_t now_us;       /* real time */
};

/* Is this text made like a signed token: three parts with dots between? Says nothing about its
 * worth. */
bool df_jwt_is(const char *token);

/* What a token says of itself, and nobody vouches for: to tell people about it, never to trust it.
 * *ret: the payload; delete with cJSON_Delete(). */
int df_jwt_peek(const char *token, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Checks everything above, then nbf, iat and exp (which must be there) with DF_JWT_LEEWAY_S. *ret:
 * the payload; delete with cJSON_Delete(). */
int df_jwt_verify(const char *token, const struct df_jwk_set *keys, const struct df_jwt_expect *e,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
