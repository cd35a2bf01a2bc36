/*
 * auth.h - authenticates the caller of a request.
 *
 * Every call except the probes needs a bearer token: one of the token file (tokens.h), one that a
 * person made (personal.h), one that the cluster signed for the audience "dayfly", or without these
 * the one that only this user can read (local_token.h). Without a token file and accounts the
 * server listens on loopback only, and with auth.loopback: open it needs no token: every caller is
 * admin. Browsers are a danger there: a page may send requests to loopback, and DNS rebinding may
 * make them same-origin. So the Host header must name loopback, and an Origin header must be our
 * own. steps/step_auth.h checks the tokens of steps.
 */
#ifndef DF_IDENTITY_AUTH_H
#define DF_IDENTITY_AUTH_H

#include "common/base/limits.h"
#include "spawner/model/grant.h"
#include "spawner/model/model.h"

struct df_tokens;
struct df_claims;

enum df_known_by {
    DF_KNOWN_BY_LOCAL, /* the token of local_token.h, or none is needed */
    DF_KNOWN_BY_TOKEN, /* of the token file */
    DF_KNOWN_BY_ACCOUNT,
    DF_KNOWN_BY_OPENID
};

/* "local", "tokenFile", "serviceAccount", "openid" */
const char *df_known_by_name(enum df_known_by known_by);

struct df_caller {
    enum df_role role; /* in what belongs to no executor: from the verbs on all of them */
    struct df_granted granted;
    enum df_known_by known_by;
    cJSON *groups;     /* owned: of a person of an OpenID provider, as grants name them; or NULL */
    int64_t issued_us; /* when the provider made the token of such a person; 0: not known */
    cJSON *token;      /* owned: of whoever comes with a personal token (personal.h), that token as
                        * its list shows it; the rest is its owner's. NULL: another token */
    char name[DF_LIMIT_CALLER + 1]; /* for the audit trail: the token's name, "namespace/account",
                                     * "local", or "anonymous" */
};

enum df_scheme { DF_SCHEME_NONE, DF_SCHEME_BEARER, DF_SCHEME_BASIC };

struct df_credentials {
    enum df_scheme scheme;
    char user[64]; /* BASIC */
    char *secret;  /* the token or password, owned; NULL: none */
};

/* Reads an Authorization header (NULL: none). DENIED Unauthorized when it is malformed or of
 * another scheme, or its token longer than DF_LIMIT_TOKEN; there is no secret then. Wipe with
 * df_credentials_wipe(). */
int df_credentials_parse(const char *header, struct df_credentials *ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Overwrites the secret in memory and frees it. */
void df_credentials_wipe(struct df_credentials *c);

/* True if a Host header ("localhost:8030", "127.0.0.1", "[::1]:80") names loopback. NULL: false. */
bool df_host_is_loopback(const char *host);

/* True if this Origin header ("http://localhost:8030") names the same server as this Host header.
 * tls: the server speaks https. */
bool df_origin_is_host(const char *origin, const char *host, bool tls);

/* Frees what it owns. */
void df_caller_free(struct df_caller *caller);

/* The caller with these credentials. tokens NULL: there is no token file. basic: HTTP basic is
 * accepted, with the token as password. DENIED Unauthorized. */
int df_auth_caller(struct df_tokens *tokens, const struct df_credentials *c, bool basic,
                   struct df_caller *ret, struct df_err *err) DF_MUST_CHECK;

/* The caller with a service account token of the cluster. accounts: auth.serviceAccounts, which
 * gives a role; grants: auth.grants. DENIED Unauthorized for an account that neither names; else
 * the errors of df_claim_account(). */
int df_auth_account(const cJSON *accounts, const cJSON *grants, struct df_claims *claims,
                    const char *token, struct df_caller *ret, struct df_err *err) DF_MUST_CHECK;

/* Somebody without any grant, on all executors or on some. */
bool df_caller_is_nobody(const struct df_caller *caller);

/* What to say if nobody is admin. */
#define DF_AUTH_NO_ADMIN                                                                           \
    "nobody is admin: no grant of auth.grants has the preset admin on {all: true}, no token of "   \
    "auth.tokenFile and no account of auth.serviceAccounts the role admin. Nobody could then "     \
    "read the audit trail, back up, or change who may what by labels. Add `NAME: {to: {groups: "   \
    "[GROUP]}, on: {all: true}, preset: admin}` to auth.grants, or a token: `dayfly token-file "   \
    "create --name NAME --role admin --token-file FILE`"
/* Is anybody admin, as far as the service can know? USER if nobody is and there are grants: who
 * made them left the last admin out. tokens as in df_tokens_list(). */
int df_auth_check_admin(const cJSON *accounts, const cJSON *grants, struct df_tokens *tokens,
                        bool *ret, struct df_err *err) DF_MUST_CHECK;

/* DENIED Forbidden if the caller's role is too low; the message names both roles. */
int df_auth_require(const struct df_caller *caller, enum df_role needed,
                    struct df_err *err) DF_MUST_CHECK;

#endif
