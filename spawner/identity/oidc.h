/*
 * oidc.h - people with tokens of an OpenID provider (OpenID Connect Core 1.0): the JWT is the
 * bearer token of their requests, verified offline with the provider's keys, which its discovery
 * document leads to (OpenID Connect Discovery 1.0). Claims and prefixes are those of
 * kube-apiserver's --oidc-* flags. Thread rule: any thread.
 */
#ifndef DF_IDENTITY_OIDC_H
#define DF_IDENTITY_OIDC_H

#include "spawner/identity/auth.h"
#include "spawner/model/grant.h"

struct df_oidc; /* opaque */

/* Asks nobody yet: keys are fetched for the first token. p: borrowed; outlives the provider. */
int df_oidc_new(const struct df_openid *p, struct df_oidc **ret, struct df_err *err) DF_MUST_CHECK;
void df_oidc_free(struct df_oidc *o); /* NULL is fine */

/* Does the provider answer, and name itself as configured? Fetches its keys. Class USER or
 * RETRY. */
int df_oidc_ask(struct df_oidc *o, struct df_err *err) DF_MUST_CHECK;

/* True if the token says that it is of this issuer. Verifies nothing. */
bool df_oidc_is_issuer(const struct df_oidc *o, const char *token);

/* Adds what the grants (grant.h) give to the person with caller->name and groups. DENIED Forbidden:
 * no grant names them or a group, which the message lists. */
int df_oidc_grant(const cJSON *grants, struct df_caller *caller, struct df_err *err) DF_MUST_CHECK;

/* The person with this token and their groups, and df_oidc_grant(), after whose failure *ret is the
 * person, too, without any right. DENIED with a reason of jwt.h or TokenNoUser; RETRY while the
 * provider's keys are not available. */
int df_oidc_caller(struct df_oidc *o, const cJSON *grants, const char *token, struct df_caller *ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
