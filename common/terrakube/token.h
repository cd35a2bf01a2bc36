/*
 * token.h - tokens between Terrakube's API and its executors: HMAC over InternalSecret.
 * Contract: jjwt chooses HS256, HS384 or HS512 by the key's length (48, 64 bytes); ours are HS256,
 * which every version takes. Thread rule: pure functions, any thread.
 */
#ifndef DF_TERRAKUBE_TOKEN_H
#define DF_TERRAKUBE_TOKEN_H

#include "common/base/buf.h"

/* Adds a token to out, which the caller wipes: iss TerrakubeInternal, aud, email, name, iat, exp.
 * workspace: the claim workspaceId; or NULL. secret: InternalSecret, base64 of either alphabet.
 * USER: the secret is shorter than 32 bytes or not base64. */
int df_terrakube_token_make(const char *secret, const char *workspace, int64_t now_us,
                            int64_t life_s, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* Checks a token of the API (issuer TERRAKUBE_INTERNAL; exp with DF_JWT_LEEWAY_S). DENIED with the
 * reasons of jwt.h. */
int df_terrakube_token_check(const char *secret, const char *token, int64_t now_us,
                             struct df_err *err) DF_MUST_CHECK;

#endif
