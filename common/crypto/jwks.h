/*
 * jwks.h - an issuer of tokens and its keys, kept and fetched again when they must be.
 *
 * The keys are fetched at the first token, and again
 *   - when a token names a key that is not among them (the issuer rotates its keys), but at most
 *     once in DF_JWKS_PAUSE_S: forged key ids must not become requests to the issuer;
 *   - when they are older than DF_JWKS_AGE_S, so that a key that was taken back is forgotten. While
 *     the issuer cannot be reached the keys at hand stay good.
 * Thread rule: any thread. Nobody waits for a fetch whose token does not need it.
 */
#ifndef DF_CRYPTO_JWKS_H
#define DF_CRYPTO_JWKS_H

#include "common/crypto/jwt.h"

#define DF_JWKS_PAUSE_S 10
#define DF_JWKS_AGE_S 3600

#define DF_JWKS_PATH "/openid/v1/jwks"
#define DF_JWKS_DISCOVERY "/.well-known/openid-configuration"

struct df_jwks; /* opaque */

struct df_jwks_options {
    /* Fetches one of the two paths above (those of a Kubernetes API server) into ret, which has its
     * cap. Called by whoever brings the token, one call at a time. The discovery document is asked
     * for once, and only without an issuer below. */
    int (*fetch)(void *arg, const char *path, struct df_buf *ret, struct df_err *err);
    void *arg;          /* borrowed; outlives the set */
    const char *issuer; /* copied; NULL: the discovery document's `issuer` */
};

int df_jwks_new(const struct df_jwks_options *o, struct df_jwks **ret,
                struct df_err *err) DF_MUST_CHECK;
void df_jwks_free(struct df_jwks *j); /* NULL is fine */

/* df_jwt_verify() with the issuer's keys and the clock of clock.h. Beside its reasons: class RETRY
 * (reason TokenKeysUnavailable) when the keys cannot be had now, or when the token names an unknown
 * key and it is too early to ask for new ones. */
int df_jwks_verify(struct df_jwks *j, const char *token, const char *audience, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
