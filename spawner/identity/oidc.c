/*
 * oidc.c - the provider's keys, then the claims of a verified token: the person's name, their
 * groups, and the role by the grants. Read df_oidc_caller() first.
 */
#include "spawner/identity/oidc.h"

#include "common/base/parse.h"
#include "common/crypto/jwks.h"
#include "common/oauth/openid.h"

enum { NAMED_GROUPS_MAX = 800 }; /* bytes of a message */

struct df_oidc {
    const struct df_openid *p;
    struct df_http *http; /* used by one thread at a time, as jwks.h promises */
    struct df_jwks *keys;
};

static int fetch_keys(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    struct df_oidc *o = arg;
    (void)path; /* always the keys: the issuer is configured */
    return df_openid_keys(o->http, o->p->issuer, ret, err) < 0
               ? df_err_wrap(err, "auth.oidc.issuer")
               : 0;
}

/* ---- lifecycle ---- */

int df_oidc_new(const struct df_openid *p, struct df_oidc **ret, struct df_err *err)
{
    struct df_oidc *o = calloc(1, sizeof(*o));
    if (!o)
        return df_fail_oom(err);
    o->p = p;
    const struct df_http_options http = {.ca_file = p->ca_file};
    const struct df_jwks_options keys = {.fetch = fetch_keys, .arg = o, .issuer = p->issuer};
    if (df_http_new(&http, &o->http, err) < 0 || df_jwks_new(&keys, &o->keys, err) < 0) {
        df_oidc_free(o);
        return -1;
    }
    *ret = o;
    return 0;
}

void df_oidc_free(struct df_oidc *o)
{
    if (!o)
        return;
    df_jwks_free(o->keys);
    df_http_free(o->http);
    free(o);
}

int df_oidc_ask(struct df_oidc *o, struct df_err *err)
{
    DF_BUF struct df_buf keys = DF_BUF_INIT(DF_LIMIT_JWKS);
    return fetch_keys(o, DF_JWKS_PATH, &keys, err);
}

bool df_oidc_is_issuer(const struct df_oidc *o, const char *token)
{
    DF_JSON cJSON *claims = NULL;
    return df_jwt_peek(token, &claims, NULL) == 0 &&
           df_streq(df_json_str(claims, "iss"), o->p->issuer);
}

/* ---- the claims ---- */

/* Names of claims may have dots themselves ("https://example.com/groups"). */
static const cJSON *claim_at(const cJSON *claims, const char *name)
{
    const cJSON *whole = cJSON_GetObjectItemCaseSensitive(claims, name);
    return whole ? whole : df_json_at(claims, name);
}

static int fail_user(const char *claim, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_DENIED, "TokenNoUser", "the token's claim \"%.64s\" %s",
                          claim, why);
}

static int take_name(const struct df_openid *p, const cJSON *claims, char ret[DF_LIMIT_CALLER + 1],
                     struct df_err *err)
{
    bool is_email = df_streq(p->user_claim, "email");
    const cJSON *verified = cJSON_GetObjectItemCaseSensitive(claims, "email_verified");
    const char *name = cJSON_GetStringValue(claim_at(claims, p->user_claim));
    bool qualifies = !p->user_prefix && !is_email;
    const char *prefix = qualifies                                          ? p->issuer
                         : p->user_prefix && !df_streq(p->user_prefix, "-") ? p->user_prefix
                                                                            : "";
    if (df_str_empty(name))
        return fail_user(p->user_claim, "names nobody", err);
    if (df_has_control(name)) /* names stand in logs and in the audit trail */
        return fail_user(p->user_claim, "has control characters", err);
    if (is_email && verified && !cJSON_IsTrue(verified))
        return fail_user("email_verified", "is not true", err);
    int n = snprintf(ret, DF_LIMIT_CALLER + 1, "%s%s%s", prefix, qualifies ? "#" : "", name);
    return n <= DF_LIMIT_CALLER ? 0 : fail_user(p->user_claim, "is too long", err);
}

static int add_group(cJSON *groups, const char *prefix, const cJSON *group, struct df_err *err)
{
    const char *name = cJSON_GetStringValue(group);
    if (df_str_empty(name) || df_has_control(name))
        return 0;
    DF_FREE char *whole = df_strf("%s%s", prefix ? prefix : "", name);
    return df_check_alloc(whole, err) < 0 ? -1 : df_json_append_str(groups, whole, err);
}

/* *ret: the token's groups with their prefix; the caller deletes it. */
static int take_groups(const struct df_openid *p, const cJSON *claims, cJSON **ret,
                       struct df_err *err)
{
    const cJSON *claim = claim_at(claims, p->groups_claim), *group;
    DF_JSON cJSON *groups = cJSON_CreateArray();
    if (df_check_alloc(groups, err) < 0)
        return -1;
    if (cJSON_IsString(claim) && add_group(groups, p->groups_prefix, claim, err) < 0)
        return -1;
    if (cJSON_IsArray(claim)) {
        cJSON_ArrayForEach (group, claim) {
            if (add_group(groups, p->groups_prefix, group, err) < 0)
                return -1;
        }
    }
    *ret = DF_TAKE(groups);
    return 0;
}

static int fail_no_grant(const char *name, const cJSON *groups, struct df_err *err)
{
    DF_BUF struct df_buf list = DF_BUF_INIT(NAMED_GROUPS_MAX);
    const cJSON *group;
    cJSON_ArrayForEach (group, groups) {
        if (df_buf_addf(&list, "%s%s", list.len ? ", " : "", group->valuestring) < 0)
            break;
    }
    return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                          "no grant of auth.grants names %s or one of the token's groups: %s", name,
                          list.len ? df_buf_str(&list) : "it has none");
}

int df_oidc_grant(const cJSON *grants, struct df_caller *caller, struct df_err *err)
{
    const struct df_grantee who = {.user = caller->name, .groups = caller->groups};
    caller->known_by = DF_KNOWN_BY_OPENID;
    if (df_grants_of(grants, &who, &caller->granted, err) < 0)
        return -1;
    if (df_caller_is_nobody(caller))
        return fail_no_grant(caller->name, caller->groups, err);
    caller->role = df_verbs_role(caller->granted.all);
    return 0;
}

int df_oidc_caller(struct df_oidc *o, const cJSON *grants, const char *token, struct df_caller *ret,
                   struct df_err *err)
{
    DF_JSON cJSON *claims = NULL;
    struct df_caller caller = {.role = DF_ROLE_NONE};
    if (df_jwks_verify(o->keys, token, o->p->audience, &claims, err) < 0 ||
        take_name(o->p, claims, caller.name, err) < 0 ||
        take_groups(o->p, claims, &caller.groups, err) < 0)
        return -1;
    double issued = df_json_num(claims, "iat", 0); /* verified: not in the future */
    caller.issued_us = issued > 0 ? (int64_t)(issued * 1e6) : 0;
    *ret = caller;
    return df_oidc_grant(grants, ret, err);
}
