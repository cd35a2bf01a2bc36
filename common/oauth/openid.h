/*
 * openid.h - an OpenID provider, as its discovery document describes it (OpenID Connect Discovery
 * 1.0). Thread rule: that of the df_http.
 */
#ifndef DF_OAUTH_OPENID_H
#define DF_OAUTH_OPENID_H

#include "common/http/http.h"
#include "common/json/json.h"

/* Checks the URL of an issuer: https, or http to this machine; scheme, host and path alone.
 * setting: what the message names. Class USER. */
int df_openid_check_issuer(const char *setting, const char *issuer,
                           struct df_err *err) DF_MUST_CHECK;

/* Fetches the discovery document; the caller deletes *ret. USER if it names another issuer. */
int df_openid_discover(struct df_http *h, const char *issuer, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* The URL that a discovery document has under this name ("token_endpoint"), borrowed; NULL if it
 * has none, or one that others could read: http of an issuer with https, or of another machine. */
const char *df_openid_url(const cJSON *discovery, const char *name);

/* Discovers the provider and fetches its keys (jwks.h) into ret. */
int df_openid_keys(struct df_http *h, const char *issuer, struct df_buf *ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
