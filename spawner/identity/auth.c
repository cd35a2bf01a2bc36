/*
 * auth.c - first the Authorization header, then the Host and Origin headers, then the caller: by a
 * token of the token file (df_auth_caller()) or of a service account (df_auth_account()).
 */
#include "spawner/identity/auth.h"

#include <arpa/inet.h>

#include "common/base/buf.h"
#include "common/crypto/crypto.h"
#include "spawner/identity/claim.h"
#include "spawner/identity/tokens.h"
#include "spawner/model/access.h"

static int fail_unauthorized(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized", "%s", why);
}

static int copy_secret(struct df_credentials *c, const char *secret, size_t n, struct df_err *err)
{
    if (n == 0 || n > DF_LIMIT_TOKEN || memchr(secret, '\0', n))
        return fail_unauthorized(err, "the Authorization header has no usable token");
    return df_check_alloc(c->secret = strndup(secret, n), err);
}

static int split_basic(struct df_credentials *c, const struct df_buf *pair, struct df_err *err)
{
    const char *text = df_buf_str(pair);
    const char *colon = memchr(text, ':', pair->len);
    size_t user = colon ? (size_t)(colon - text) : 0;
    if (!colon || user >= sizeof(c->user) || memchr(text, '\0', user))
        return fail_unauthorized(err, "the Authorization header is not user:password in base64");
    memcpy(c->user, text, user);
    c->user[user] = '\0';
    return copy_secret(c, colon + 1, pair->len - user - 1, err);
}

static int parse_basic(struct df_credentials *c, const char *base64, struct df_err *err)
{
    struct df_buf pair = DF_BUF_INIT(sizeof(c->user) + DF_LIMIT_TOKEN + 1);
    int result = df_base64_decode(base64, strlen(base64), false, &pair, NULL) < 0
                     ? fail_unauthorized(err, "the Authorization header is not base64")
                     : split_basic(c, &pair, err);
    df_buf_wipe(&pair);
    return result;
}

int df_credentials_parse(const char *header, struct df_credentials *ret, struct df_err *err)
{
    *ret = (struct df_credentials){0};
    if (!header)
        return 0;
    size_t word = strcspn(header, " ");
    const char *rest = header + word + strspn(header + word, " ");
    if (word == strlen("Bearer") && strncasecmp(header, "Bearer", word) == 0) {
        ret->scheme = DF_SCHEME_BEARER;
        return copy_secret(ret, rest, strlen(rest), err);
    }
    if (word == strlen("Basic") && strncasecmp(header, "Basic", word) == 0) {
        ret->scheme = DF_SCHEME_BASIC;
        return parse_basic(ret, rest, err);
    }
    return fail_unauthorized(err, "the Authorization header is neither Bearer nor Basic");
}

void df_credentials_wipe(struct df_credentials *c)
{
    df_str_wipe(&c->secret);
    *c = (struct df_credentials){0};
}

/* The length of the host in "host[:port]", with its brackets; 0 if the rest is not a port. */
static size_t host_length(const char *host)
{
    size_t n = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
    if (*host == '[' && host[n] == ']')
        n++;
    const char *port = host + n;
    if (!*port)
        return n;
    return *port == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1) ? n : 0;
}

static bool is_loopback_v4(const char *host, size_t n)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (n >= sizeof(text))
        return false;
    memcpy(text, host, n);
    text[n] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool df_host_is_loopback(const char *host)
{
    size_t n = host ? host_length(host) : 0;
    if (n == strlen("localhost") && strncasecmp(host, "localhost", n) == 0)
        return true;
    if (n == strlen("[::1]") && strncmp(host, "[::1]", n) == 0)
        return true;
    return n && is_loopback_v4(host, n);
}

bool df_origin_is_host(const char *origin, const char *host, bool tls)
{
    const char *scheme = tls ? "https://" : "http://";
    return host && strncasecmp(origin, scheme, strlen(scheme)) == 0 &&
           strcasecmp(origin + strlen(scheme), host) == 0;
}

const char *df_known_by_name(enum df_known_by known_by)
{
    static const char *const names[] = {"local", "tokenFile", "serviceAccount", "openid"};
    return names[known_by];
}

void df_caller_free(struct df_caller *caller)
{
    df_granted_free(&caller->granted);
    cJSON_Delete(caller->token);
    caller->token = NULL;
    cJSON_Delete(caller->groups);
    caller->groups = NULL;
}

int df_auth_caller(struct df_tokens *tokens, const struct df_credentials *c, bool basic,
                   struct df_caller *ret, struct df_err *err)
{
    struct df_caller caller = {.role = DF_ROLE_NONE};
    if (c->scheme == DF_SCHEME_NONE && tokens)
        return fail_unauthorized(
            err, "a bearer token is needed (Authorization: Bearer ...): one of auth.tokenFile, or "
                 "without such a file that in <dataDirectory>/token");
    if (c->scheme == DF_SCHEME_BASIC && !basic)
        return fail_unauthorized(err, "HTTP basic works on state routes only; send a bearer token");
    if (c->scheme == DF_SCHEME_NONE)
        caller = (struct df_caller){.role = DF_ROLE_ADMIN, .name = "local"};
    else if (tokens)
        caller.role = df_tokens_find(tokens, c->secret, caller.name);
    if (caller.role == DF_ROLE_NONE)
        return fail_unauthorized(err, tokens ? "the token is unknown"
                                             : "this server has no token file: send no token");
    bool of_file = tokens && df_tokens_are_of_file(tokens);
    caller.known_by = of_file ? DF_KNOWN_BY_TOKEN : DF_KNOWN_BY_LOCAL;
    caller.granted.all = df_role_verbs(caller.role);
    *ret = caller;
    return 0;
}

static int add_role(const cJSON *accounts, struct df_caller *caller, struct df_err *err)
{
    enum df_role role = DF_ROLE_NONE;
    const cJSON *word = cJSON_GetObjectItemCaseSensitive(accounts, caller->name);
    if (word && df_role_parse(word->valuestring, &role, err) < 0)
        return -1;
    caller->granted.all |= df_role_verbs(role);
    caller->role = df_verbs_role(caller->granted.all);
    return 0;
}

bool df_caller_is_nobody(const struct df_caller *caller)
{
    return !caller->granted.all && !caller->granted.some_count;
}

static int fail_account(struct df_caller *caller, struct df_err *err)
{
    df_caller_free(caller);
    return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized",
                          "the service account %s is neither in auth.serviceAccounts nor in a "
                          "grant of auth.grants",
                          caller->name);
}

int df_auth_account(const cJSON *accounts, const cJSON *grants, struct df_claims *claims,
                    const char *token, struct df_caller *ret, struct df_err *err)
{
    struct df_caller caller = {.role = DF_ROLE_NONE};
    const struct df_grantee who = {.account = caller.name};
    if (!claims)
        return fail_unauthorized(err,
                                 "service account tokens need a cluster; this server uses none");
    if (df_claim_account(claims, token, caller.name, err) < 0 ||
        df_grants_of(grants, &who, &caller.granted, err) < 0)
        return -1;
    if (add_role(accounts, &caller, err) < 0) {
        df_caller_free(&caller);
        return -1;
    }
    if (df_caller_is_nobody(&caller))
        return fail_account(&caller, err);
    caller.known_by = DF_KNOWN_BY_ACCOUNT;
    *ret = caller;
    return 0;
}

int df_auth_require(const struct df_caller *caller, enum df_role needed, struct df_err *err)
{
    if (caller->role >= needed)
        return 0;
    const char *name = caller->name[0] ? caller->name : "the caller";
    if (caller->role == DF_ROLE_NONE)
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                              "%s has no role, for no grant of theirs is on all executors; %s is "
                              "needed",
                              name, df_role_name(needed));
    return df_fail_reason(err, DF_ERR_DENIED, "Forbidden", "%s has the role %s; %s is needed", name,
                          df_role_name(caller->role), df_role_name(needed));
}

int df_auth_check_admin(const cJSON *accounts, const cJSON *grants, struct df_tokens *tokens,
                        bool *ret, struct df_err *err)
{
    DF_JSON cJSON *held = cJSON_CreateArray();
    if (df_check_alloc(held, err) < 0 || df_tokens_list(tokens, held, err) < 0)
        return -1;
    *ret = df_access_has_admin(
        &(struct df_access_rules){.grants = grants, .accounts = accounts, .tokens = held});
    if (!*ret && cJSON_GetArraySize(grants))
        return df_fail(err, DF_ERR_USER, "auth.grants: " DF_AUTH_NO_ADMIN);
    return 0;
}
