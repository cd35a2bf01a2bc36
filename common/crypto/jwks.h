/*
 * jwks.h - an issuer of tokens and its keys, which are cached and fetched again when necessary.
 *
 * The keys are fetched for the first token, and again
 *   - when a token names an unknown key (the issuer rotates its keys), but at most once in
 *     DF_JWKS_PAUSE_S, because forged key ids must not become requests to the issuer;
 *   - when they are older than DF_JWKS_AGE_S, so that a revoked key is dropped. While the issuer
 *     cannot be reached the cached keys stay valid.
 * Thread rule: any thread. A thread waits for a fetch only if its token needs it.
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
    /* Fetches one of the two paths above (those of a Kubernetes API server) into ret, whose cap
     * applies. Called by the thread that verifies a token, one call at a time. The discovery
     * document is fetched once, and only if there is no issuer below. */
    int (*fetch)(void *arg, const char *path, struct df_buf *ret, struct df_err *err);
    void *arg; /* borrowed; outlives the set */
    /* What the issuer's clock is ahead of ours, in microseconds; any thread. NULL: nothing. */
    int64_t (*ahead_us)(void *arg);
    const char *issuer; /* copied; NULL: the discovery document's `issuer` */
};

int df_jwks_new(const struct df_jwks_options *o, struct df_jwks **ret,
                struct df_err *err) DF_MUST_CHECK;
void df_jwks_free(struct df_jwks *j); /* NULL is fine */

/* Like df_jwt_verify(), with the issuer's keys and clock. In addition RETRY (reason
 * TokenKeysUnavailable) if the keys cannot be fetched now, or the token names an unknown key and it
 * is too early to fetch again. */
int df_jwks_verify(struct df_jwks *j, const char *token, const char *audience, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
