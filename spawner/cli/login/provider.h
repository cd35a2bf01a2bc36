/*
 * provider.h - the OpenID provider of a service, as a client without a secret (a public client of
 * OAuth 2.0) asks it. Thread rule: a provider is used by one thread at a time.
 */
#ifndef DF_CLI_LOGIN_PROVIDER_H
#define DF_CLI_LOGIN_PROVIDER_H

#include "common/http/http.h"
#include "common/json/json.h"

struct df_provider {
    const cJSON *login; /* borrowed; {issuer, clientId, caFile or none} */
    struct df_http *http;
    cJSON *discovery;
};

/* Checks the issuer and fetches its discovery document. login: borrowed; outlives the provider.
 * Errors as of openid.h. Also after a failure: df_provider_free(). */
int df_provider_open(struct df_provider *p, const cJSON *login, struct df_err *err) DF_MUST_CHECK;
void df_provider_free(struct df_provider *p);
#define DF_PROVIDER DF_CLEANUP(df_provider_free)

/* The issuer and the client id, for messages. */
const char *df_provider_issuer(const struct df_provider *p);
const char *df_provider_client(const struct df_provider *p);

/* POST of a form, which ends with a name of NULL and to which the client id is added, to the URL
 * that the discovery document has under this name. *ret: the answer, or NULL if it has no content;
 * the caller wipes it (df_json_wipe); ret may be NULL. What the provider refuses is DENIED, and the
 * reason is the word of OAuth: authorization_pending, invalid_grant. USER NoEndpoint: the document
 * has no such URL. */
int df_provider_ask(struct df_provider *p, const char *endpoint,
                    const struct df_http_parameter *form, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Verifies the ID token of such an answer as the service does, and takes it and the refresh token,
 * if there is one, into `to` (idToken, refreshToken); the latter also of an answer that is refused,
 * because the one before counts no more. */
int df_provider_take(struct df_provider *p, const cJSON *answer, cJSON *to,
                     struct df_err *err) DF_MUST_CHECK;

#endif
