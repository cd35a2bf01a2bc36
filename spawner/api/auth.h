/*
 * auth.h - who is asking.
 *
 * Two shapes. With a token file or accounts every call needs a bearer token (tokens.h, or one that
 * the cluster signed for the audience "dayfly") but the probes. Without them the server listens on
 * loopback only, and whoever can connect is the machine's user: admin. Then a browser is the
 * danger: a page may send requests to loopback, and DNS rebinding may make them same-origin. So the
 * Host header must name loopback, and an Origin header must be our own. Step tokens are not looked
 * at here: steps/steps.h compares them with the step's own hashes.
 */
#ifndef DF_API_AUTH_H
#define DF_API_AUTH_H

#include "common/base/limits.h"
#include "spawner/model/model.h"

struct df_tokens;
struct df_claims;

struct df_caller {
    enum df_role role;
    char name[DF_LIMIT_CALLER + 1]; /* for the audit trail: the token's name, "namespace/account",
                                     * "local", or "anonymous" */
};

enum df_scheme { DF_SCHEME_NONE, DF_SCHEME_BEARER, DF_SCHEME_BASIC };

struct df_credentials {
    enum df_scheme scheme;
    char user[64];                   /* BASIC */
    char secret[DF_LIMIT_TOKEN + 1]; /* the token or password */
};

/* Reads an Authorization header (NULL: none). DENIED Unauthorized when it is malformed or of
 * another scheme. Wipe with df_credentials_wipe(). */
int df_credentials_parse(const char *header, struct df_credentials *ret,
                         struct df_err *err) DF_MUST_CHECK;
void df_credentials_wipe(struct df_credentials *c);

/* Does a Host header ("localhost:8030", "127.0.0.1", "[::1]:80") name loopback? NULL does not. */
bool df_host_is_loopback(const char *host);

/* Is this Origin header ("http://localhost:8030") the server that this Host header names? tls: the
 * server speaks https. */
bool df_origin_is_host(const char *origin, const char *host, bool tls);

/* The caller behind these credentials. tokens == NULL: the embedded shape. basic: HTTP basic is
 * accepted, its password being the token. DENIED Unauthorized. */
int df_auth_caller(struct df_tokens *tokens, const struct df_credentials *c, bool basic,
                   struct df_caller *ret, struct df_err *err) DF_MUST_CHECK;

/* The caller behind a service account token of the cluster. accounts: auth.serviceAccounts. DENIED
 * Unauthorized for an account that is not listed, and for what df_claim_account() refuses. */
int df_auth_account(const cJSON *accounts, struct df_claims *claims, const char *token,
                    struct df_caller *ret, struct df_err *err) DF_MUST_CHECK;

/* DENIED Forbidden when the role is below what is needed; the message says both. */
int df_auth_require(const struct df_caller *caller, enum df_role needed,
                    struct df_err *err) DF_MUST_CHECK;

#endif
